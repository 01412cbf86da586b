// Sources: the design `source`: for each communicator an array with a list for each rank. Thread:
// holder of the engine. Owns its arrays and lists, no hook. Invariants: an array reaches to the
// highest rank that was seen, or to all ranks where a collective tells how many there are; what
// finds no memory stands in one list that is always searched, too.
#pragma once
#include "matching/chain.h"
#include "matching/config.h"
#include "matching/map.h"

namespace headway::matching {

template <bool posted>
class Sources {
 public:
  void prepare(const Config& config) { processes_ = config.processes; }
  ~Sources();
  void add(Hook* hook, Counters& counters);
  void remove(Hook* hook);
  // The oldest hook that fits; `wanted` names a source.
  Hook* find(const Key& wanted, uint64_t& traversed) {
    Hook* found = nullptr;
    const Ranks* ranks = ranks_of(wanted.context);
    if (ranks && uint32_t(wanted.source) < ranks->room) {
      if (const Chain* chain = ranks->chains[wanted.source]) {
        found = scan<posted>(*chain, wanted, traversed);
      }
    }
    if (homeless_.first) [[unlikely]]
      found = older(found, scan<posted>(homeless_, wanted, traversed));
    return found;
  }
  // The same for any source.
  Hook* find_any(const Key& wanted, uint64_t& traversed);
  void forget(uint64_t context);
  uint32_t queues() const { return uint32_t(places_); }
  size_t memory() const { return memory_ + contexts_.memory(); }

 private:
  struct Ranks {
    uint64_t context;
    Chain** chains;
    uint32_t room;
    uint32_t hooks;
  };
  static constexpr uint32_t first_room = 8;
  static constexpr uint32_t most_ranks = 1u << 24;  // a frame that names another is garbage

  Ranks* ranks_of(uint64_t context) {
    if (last_ && last_->context == context) return last_;
    Ranks** ranks = contexts_.find(context);
    return ranks ? last_ = *ranks : nullptr;
  }
  [[gnu::noinline]] Chain* make_chain(uint64_t context, uint32_t source, uint32_t ranks);
  bool widen(Ranks& ranks, uint32_t wanted);
  void free_ranks(Ranks* ranks);

  Map<Ranks*> contexts_;
  Ranks* last_ = nullptr;
  Chain homeless_{};
  uint32_t processes_ = 1;
  base::Counter places_;
  base::Counter memory_;
};

}  // namespace headway::matching
