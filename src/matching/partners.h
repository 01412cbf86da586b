// Partners: the design `pnp`: sources that send much have lists of their own, all others share one.
// When a shared list reaches the threshold, those sources that have more than the average in it
// become partners, and the others get a new shared list, in a new level. Thread: holder of the
// engine. Owns its lists, no hook. Invariants: what a source added is, from old to new: in the base
// list, in the shared lists of the levels before it became a partner, in its own; the lists that
// are made never outnumber the cap. Sources are ranks by their number, in whatever communicator.
#pragma once
#include "matching/chain.h"
#include "matching/config.h"
#include "matching/map.h"

namespace headway::matching {

template <bool posted>
class Partners {
 public:
  void prepare(const Config& config) {
    cap_ = config.queues(config.partner_cap);
    threshold_ = next_look_ = config.threshold ? config.threshold : 1;
    processes_ = config.processes;
  }
  ~Partners();
  void add(Hook* hook, Counters& counters) {
    if (!levels_) [[likely]] {
      base_.append(hook);
      if (base_.count >= next_look_) [[unlikely]]
        extract(base_, counters);
      return;
    }
    add_to_level(hook, counters);
  }
  // The oldest hook that fits; `wanted` names a source.
  Hook* find(const Key& wanted, uint64_t& traversed) const {
    if (Hook* hook = scan<posted>(base_, wanted, traversed)) return hook;
    return levels_ ? find_in_levels(wanted, traversed) : nullptr;
  }
  // The same for any source.
  Hook* find_any(const Key& wanted, uint64_t& traversed) const;
  uint32_t queues() const { return uint32_t(made_); }
  size_t memory() const { return memory_ + partners_.memory(); }

 private:
  struct Level {
    Level* next;
    uint32_t number;
    uint32_t count;
    Chain shared;
    // Followed by `count` chains of partners.
    Chain* own() { return reinterpret_cast<Chain*>(this + 1); }
    static size_t size(uint32_t count) { return sizeof(Level) + count * sizeof(Chain); }
  };
  struct Partner {
    uint32_t level;
    Chain* chain;
  };
  struct Share {
    uint32_t source;
    uint32_t count;
  };

  void add_to_level(Hook* hook, Counters& counters);
  Hook* find_in_levels(const Key& wanted, uint64_t& traversed) const;
  void extract(Chain& shared, Counters& counters);
  void promote(const Chain& shared);

  Chain base_{};
  Level* levels_ = nullptr;
  Level* last_ = nullptr;
  Map<Partner> partners_;
  uint32_t cap_ = 0;
  base::Counter made_;
  uint32_t threshold_ = 1;
  uint32_t next_look_ = 1;  // at the shared list: its length then
  uint32_t processes_ = 1;
  base::Counter memory_;
};

}  // namespace headway::matching
