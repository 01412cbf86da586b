#include "rma/element.h"

#include <cstring>

#include "base/check.h"
#include "datatypes/pack.h"

namespace headway::rma {
namespace {

using datatypes::BasicClass;
using datatypes::BasicType;
using datatypes::Machine;
using datatypes::ReduceOp;

static_assert([] {
  for (const datatypes::BasicInfo& row : datatypes::basic_table) {
    if (row.extent > most_element) return false;
  }
  return true;
}());

// With a length that the compiler knows these are single loads and stores, which others that look
// at the same memory see as a whole.
template <class Word>
void swap_word(char* target, const char* expected, const char* fresh, char* before) {
  Word there, wanted;
  memcpy(&there, target, sizeof there);
  memcpy(&wanted, expected, sizeof wanted);
  memcpy(before, &there, sizeof there);
  if (there == wanted) memcpy(target, fresh, sizeof(Word));
}

void copy_out(char* to, const char* from, uint64_t n) {
  if (n == 8) {
    memcpy(to, from, 8);
  } else if (n == 4) {
    memcpy(to, from, 4);
  } else {
    memcpy(to, from, n);
  }
}

}  // namespace

bool find_work(ReduceOp op, BasicType basic, Work& work) {
  if (basic == BasicType::none || datatypes::info(basic).size == 0) return false;
  work = {op, basic, datatypes::find_reducer(op, basic)};
  return work.reduce != nullptr;
}

bool read_work(int32_t tag, Work& work) {
  const uint32_t op = uint32_t(tag) & 255, basic = uint32_t(tag) >> 8;
  if (op == 0 || op > uint32_t(ReduceOp::no_op) || basic >= datatypes::basic_count) return false;
  return find_work(ReduceOp(op), BasicType(basic), work);
}

bool may_swap(BasicType basic) {
  switch (datatypes::info(basic).group) {
    case BasicClass::c_integer:
    case BasicClass::fortran_integer:
    case BasicClass::logical:
    case BasicClass::multi_language:
    case BasicClass::byte: return true;
    default: return false;
  }
}

BasicType element_of(const datatypes::Type& type) {
  if (type.basic() != BasicType::none) return type.basic();
  const datatypes::Contents& contents = type.contents();
  BasicType found = BasicType::none;
  const datatypes::Type* last = nullptr;
  for (uint64_t i = 0; i < contents.type_count; ++i) {
    const datatypes::Type* child = contents.types[i];
    if (child == last || child->size() == 0) continue;
    last = child;
    const BasicType own = element_of(*child);
    if (own == BasicType::none || (found != BasicType::none && found != own)) {
      return BasicType::none;
    }
    found = own;
  }
  return found;
}

bool is_same(BasicType a, BasicType b) {
  if (a == b) return true;
  const datatypes::BasicInfo &one = datatypes::info(a), &other = datatypes::info(b);
  return one.machine == other.machine && one.machine != Machine::none;
}

void apply(const Work& work, char* target, const char* operands, char* before, uint64_t n) {
  const uint64_t size = work.size(), extent = work.extent();
  if (!work.has_gaps()) {
    if (before) copy_out(before, target, n * size);
    if (work.has_operand()) work.reduce(operands, target, n);
    return;
  }
  const datatypes::Type& type = datatypes::predefined(work.basic);
  for (uint64_t i = 0; i < n; ++i, target += extent) {
    if (before) (void)datatypes::pack(type, target, 1, 0, before + i * size, size);
    if (!work.has_operand()) continue;
    alignas(16) char one[most_element] = {};
    (void)datatypes::unpack(type, one, 1, 0, operands + i * size, size);
    work.reduce(one, target, 1);
  }
}

void swap(const Work& work, char* target, const char* expected, const char* fresh, char* before) {
  HEADWAY_CHECK(!work.has_gaps());
  switch (work.size()) {
    case 1: return swap_word<uint8_t>(target, expected, fresh, before);
    case 2: return swap_word<uint16_t>(target, expected, fresh, before);
    case 4: return swap_word<uint32_t>(target, expected, fresh, before);
    case 8: return swap_word<uint64_t>(target, expected, fresh, before);
    default: break;
  }
  memcpy(before, target, work.size());
  if (memcmp(before, expected, work.size()) == 0) memcpy(target, fresh, work.size());
}

}  // namespace headway::rma
