#include "communicators/detail/words.h"

#include "communicators/detail/steps.h"

namespace headway::communicators {

Outcome combine_words(const Makers& makers, objects::Comm* comm, Combine how, uint64_t* words,
                      uint64_t count) {
  constexpr auto basic = datatypes::BasicType::uint64_t;
  collectives::Reduction reduction;
  reduction.op = makers.registry.find_op(how == Combine::sum ? abi::k_SUM : abi::k_MAX);
  reduction.type = &datatypes::predefined(basic);
  reduction.kernel = datatypes::find_reducer(reduction.op->builtin, basic);
  reduction.registry = &makers.registry;
  const collectives::Data data{words, count, reduction.type};
  // In place.
  return run_whole(makers, collectives::allreduce(place_of(makers, comm), data, data, reduction));
}

Outcome agree_on(const Makers& makers, objects::Comm* comm, Outcome own) {
  static_assert(Outcome::ok == Outcome(0));
  uint64_t word = uint64_t(own);
  const Outcome combined = combine_words(makers, comm, Combine::largest, &word, 1);
  return combined == Outcome::ok ? Outcome(word) : combined;
}

}  // namespace headway::communicators
