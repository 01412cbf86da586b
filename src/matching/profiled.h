// Profiled: the design `col`: lists for collectives, as many as a profile of their first call says.
// The first call of a collective, with sizes of its kind, goes through one list that all such calls
// share; the hooks that its searches pass, on average, are the lists that it needs, and its later
// calls go into these, by rank. If there are enough already, for another shape of the same
// collective, they are used; else they form a new level. Thread: holder of the engine. Owns its
// lists, no hook. Invariants: new hooks go into the last level; the lists never outnumber the cap;
// what the profiling list and the levels give is compared by age.
#pragma once
#include "matching/chain.h"
#include "matching/config.h"
#include "matching/map.h"

namespace headway::matching {

template <bool posted>
class Profiled {
 public:
  void prepare(const Config& config) { cap_ = config.queues(config.collective_cap); }
  ~Profiled();
  void add(Hook* hook, Counters& counters) {
    Collective& collective = collectives_[hook->traffic.collective % kinds];
    ++collective.hooks;
    const bool known =
        hook->key.context == known_context_ && hook->traffic == known_traffic_ && collective.last;
    Chain& chain = known ? collective.last->list(hook->key.source) : place(hook, counters);
    chain.append(hook);
  }
  void remove(Hook* hook) {
    HEADWAY_CHECK(collectives_[hook->traffic.collective % kinds].hooks != 0);
    --collectives_[hook->traffic.collective % kinds].hooks;
    hook->links.chain->remove(hook);
  }
  Hook* find(const Key& wanted, Traffic traffic, uint64_t& traversed) {
    Hook* found = nullptr;
    if (profiling_.first) [[unlikely]]
      found = find_profiling(wanted, traffic, traversed);
    const Collective& collective = collectives_[traffic.collective % kinds];
    for (Level* level = collective.levels; level; level = level->next) {
      Hook* hook = scan<posted>(level->list(wanted.source), wanted, traversed);
      if (hook) return older(found, hook);
    }
    return found;
  }
  // A communicator is gone: its profiles, and the lists that no other uses.
  void forget(uint64_t context);
  uint32_t queues() const { return uint32_t(made_); }
  size_t profiles() const { return profiles_.count(); }
  size_t memory() const { return memory_ + profiles_.memory(); }

 private:
  static constexpr uint32_t kinds = 32;
  static constexpr size_t most_profiles = 1 << 14;  // further ones share what lists there are

  struct Level {
    Level* next;
    uint32_t count;
    uint64_t inverse;  // of count: the remainder without a division
    static size_t size(uint32_t count) { return sizeof(Level) + count * sizeof(Chain); }
    Chain* lists() { return reinterpret_cast<Chain*>(this + 1); }
    Chain& list(int32_t source) {
      const uint64_t part = inverse * uint32_t(source);
      return lists()[static_cast<unsigned __int128>(part) * count >> 64];
    }
  };
  struct Collective {
    Level* levels;
    Level* last;
    uint32_t hooks;
    uint32_t profiles;
  };
  struct Profile {
    uint64_t context;
    uint64_t traversed;
    uint32_t searches;
    int32_t tag;  // of the call that is profiled
    Traffic traffic;
    bool is_done;
  };

  static uint64_t profile_key(uint64_t context, Traffic traffic) {
    return context * 0xD6E8FEB86659FD93u + (uint64_t(traffic.collective) << 8 | traffic.shape);
  }
  Profile* profile_of(uint64_t context, Traffic traffic) const {
    return profiles_.find(profile_key(context, traffic));
  }
  [[gnu::noinline]] Chain& place(Hook* hook, Counters& counters);
  Profile* begin(const Hook* hook);
  void finish(Profile& profile, Counters& counters);
  void allocate(Collective& collective, uint32_t wanted);
  void drop_levels(Collective& collective);
  Hook* find_profiling(const Key& wanted, Traffic traffic, uint64_t& traversed);

  Chain profiling_{};
  Collective collectives_[kinds] = {};
  Map<Profile> profiles_;
  uint32_t cap_ = 0;
  base::Counter made_;
  base::Counter memory_;
  // Whose profile was found done last: most hooks come in bursts of one call.
  uint64_t known_context_ = 0;
  Traffic known_traffic_;
};

}  // namespace headway::matching
