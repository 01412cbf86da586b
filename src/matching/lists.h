// Lists: a queue by one of the designs that are made of lists, for comparison with our own: which
// hooks go where, and in which order the parts are searched. Thread: holder of the engine. Owner:
// the queue that it serves. Invariant: find gives the oldest hook that fits, as one list would.
#pragma once
#include "matching/chain.h"
#include "matching/config.h"
#include "matching/partners.h"
#include "matching/profiled.h"
#include "matching/promises.h"
#include "matching/sources.h"

namespace headway::matching {

template <bool posted>
class Lists {
 public:
  // Null without memory.
  static Lists* make(const Config& config);
  void destroy();

  void add(Hook* hook, Counters& counters);
  void remove(Hook* hook);
  Hook* find(const Key& wanted, Traffic traffic, uint64_t& traversed);
  void forget(uint64_t context);
  // Lists of their own that collectives, or point to point, have at this moment.
  uint32_t queues(bool collective) const;
  size_t memory() const;

 private:
  enum class Part : uint8_t { one, partners, profiled, sources };

  explicit Lists(const Config& config);
  Part part_of(Traffic traffic) const { return parts_[traffic.collective != 0]; }
  // Receives for any source stand apart where lists go by source.
  bool is_apart(const Hook* hook) const {
    return posted && hook->key.source == any && part_of(hook->traffic) != Part::one;
  }
  Hook* find_in(Part part, const Key& wanted, Traffic traffic, uint64_t& traversed);
  [[gnu::noinline]] Hook* older_apart(Hook* found, const Key& wanted, uint64_t& traversed) const;

  Part parts_[2];
  bool separate_;   // collectives have parts of their own
  Chain one_[2]{};  // all, or point to point; collectives
  Chain apart_{};
  Partners<posted> partners_;
  Profiled<posted> profiled_;
  Sources<posted> sources_;
  Promises* promises_;
};

}  // namespace headway::matching
