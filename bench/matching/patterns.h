// Patterns: what the receiver of many virtual ranks does: receives and arrivals, in order, like
// the queues of the paper's programs at their busiest process. One message is one receive and one
// arrival; which comes first decides whether it passes the posted or the unexpected queue.
#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "matching/matcher.h"

namespace patterns {

using headway::matching::any;
using headway::matching::Key;
using headway::matching::Traffic;

// Kinds of collectives as collectives/schedule.h numbers them; any numbers would do.
enum Collective : uint8_t {
  gather = 3,
  gatherv = 4,
  allgather = 7,
  reduce = 12,
  allreduce = 13,
  reduce_scatter = 14
};

struct Operation {
  Key key;
  Traffic traffic;
  bool receives;
  bool measured;  // not while what a run does only once is done
};

struct Size {
  uint32_t processes;
  uint64_t bytes;
  uint32_t steps;
  uint32_t warmup;  // steps before those that are measured
};

// Receives and messages of one moment, then the next.
class Builder {
 public:
  Builder(const Size& size, uint64_t seed) : size_(size), random_(seed) {}

  // Each message stands in the order of its receive; the messages come in any order.
  void add(const Key& key, Traffic traffic) { moment_.push_back({key, traffic}); }
  // What stands together so far happens: first all receives, or first all messages.
  void happen(bool receives_first, bool in_order = false) {
    std::vector<Meeting> coming = moment_;
    if (!in_order) std::shuffle(coming.begin(), coming.end(), random_);
    put(receives_first ? moment_ : coming, receives_first);
    put(receives_first ? coming : moment_, !receives_first);
    moment_.clear();
  }
  // The first half of what stands together: its receives, or its messages. More may happen before
  // end_last() brings the other half.
  void begin(bool receives_first) {
    begun_.push_back(moment_);
    moment_.clear();
    std::vector<Meeting> coming = begun_.back();
    if (!receives_first) std::shuffle(coming.begin(), coming.end(), random_);
    put(coming, receives_first);
  }
  void end_last(bool receives_first) {
    std::vector<Meeting> coming = begun_.back();
    begun_.pop_back();
    if (receives_first) std::shuffle(coming.begin(), coming.end(), random_);
    put(coming, !receives_first);
  }
  // A burst of one call of a collective: from `count` of the others.
  void call(Collective collective, uint32_t count) {
    ++tag_;
    const uint32_t others = size_.processes - 1;
    const Traffic traffic = Traffic::of(collective, size_.bytes, size_.processes);
    const uint32_t first = count < others ? uint32_t(random_() % others) : 0;
    for (uint32_t i = 0; i < std::min(count, others); ++i) {
      add({3, int32_t(1 + (first + i) % others), tag_}, traffic);
    }
  }
  // Point to point: `each` messages from `count` of the others, always the same ones.
  void exchange(uint32_t count, uint32_t each, uint32_t first_tag = 0) {
    const uint32_t others = size_.processes - 1;
    for (uint32_t message = 0; message < each; ++message) {
      for (uint32_t i = 0; i < std::min(count, others); ++i) {
        add({2, int32_t(1 + uint64_t(i) * others / std::min(count, others)),
             int32_t(first_tag + message)},
            {});
      }
    }
  }
  uint32_t others() const { return size_.processes - 1; }
  uint32_t pick(uint32_t of) { return uint32_t(random_() % of); }

  std::vector<Operation> operations;
  uint32_t step = 0;

 private:
  struct Meeting {
    Key key;
    Traffic traffic;
  };
  void put(const std::vector<Meeting>& all, bool receives) {
    for (const Meeting& one : all) {
      operations.push_back({one.key, one.traffic, receives, step >= size_.warmup});
    }
  }

  Size size_;
  std::mt19937_64 random_;
  std::vector<Meeting> moment_;
  std::vector<std::vector<Meeting>> begun_;
  int32_t tag_ = 0;
};

// Bursts of about 40: some 10 hooks are passed by a search of one list. Two thirds Iallgather.
inline void radix(Builder& builder, uint32_t most) {
  constexpr Collective mix[] = {allgather, allgather, allreduce, allgather,     allgather,
                                reduce,    allgather, allgather, reduce_scatter};
  for (int burst = 0; burst < 18; ++burst) {
    builder.call(mix[burst % 9], most - builder.pick(most / 4 + 1));
    if (burst % 9 == 4) builder.exchange(2, 1);
    builder.happen(burst % 2);
  }
}

// Mostly point to point, beside an Allgather.
inline void nbody(Builder& builder) {
  for (int half = 0; half < 2; ++half) {
    builder.call(allgather, 48);
    builder.exchange(64, 4);
    builder.happen(half);
  }
}

// Allreduce bursts, and point to point below the threshold.
inline void miniamr(Builder& builder) {
  for (int half = 0; half < 2; ++half) {
    builder.exchange(12, 2);
    builder.call(allreduce, 60);
    builder.happen(half);
  }
}

// Process 0: messages point to point of those that send to it often stand in its queues while it
// serves Gatherv calls of all ranks, one after the other. A collective's search in one list passes
// them all, which is how the paper's gain of 17 times by separation alone comes about (unexpected).
// Some receives of point to point stand behind those of a Gatherv, and gain by being taken apart.
inline void fds(Builder& builder) {
  constexpr uint32_t busy = 192, calls = 8;
  for (int half = 0; half < 2; ++half) {
    builder.exchange(busy, 8);
    builder.begin(half);
    for (uint32_t call = 0; call < calls; ++call) {
      builder.call(gatherv, ~0u);
      builder.begin(half);
      builder.exchange(busy / 8, 1, 100);
      builder.happen(half);
      builder.end_last(half);
    }
    builder.end_last(half);
  }
}

inline void one_collective(Builder& builder, Collective collective, uint32_t count) {
  for (int half = 0; half < 2; ++half) {
    builder.call(collective, count);
    builder.happen(half);
  }
}

// Receives that take any message, from any source, or with any tag.
inline void wild(Builder& builder, int kind) {
  const uint32_t count = std::min(builder.others(), 16384u);
  for (int half = 0; half < 2; ++half) {
    std::vector<Operation>& all = builder.operations;
    const auto put = [&](bool receives) {
      for (uint32_t i = 0; i < count; ++i) {
        const Key exact{2, int32_t(1 + i), int32_t(i)};
        // The messages that come last are wanted first, where a receive says which.
        const Key wanted =
            headway::matching::blur({2, int32_t(count - i), int32_t(count - 1 - i)}, kind);
        all.push_back({receives ? wanted : exact, {}, receives, true});
      }
    };
    put(half);
    put(!half);
  }
}

// All messages come in the opposite order of their receives.
inline void reverse(Builder& builder) {
  const uint32_t count = std::min(builder.others(), 16384u);
  for (int half = 0; half < 2; ++half) {
    std::vector<Operation>& all = builder.operations;
    const auto put = [&](bool receives, bool backwards) {
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t at = backwards ? count - 1 - i : i;
        all.push_back({{2, int32_t(1 + at), 7}, {}, receives, true});
      }
    };
    put(half, false);
    put(!half, true);
  }
}

// False: there is no such pattern.
inline bool build(const std::string& name, const Size& size, Builder& builder) {
  for (builder.step = 0; builder.step < size.warmup + size.steps; ++builder.step) {
    if (name == "radix") {
      radix(builder, 40);
    } else if (name == "short") {
      radix(builder, 10);
    } else if (name == "nbody") {
      nbody(builder);
    } else if (name == "miniamr") {
      miniamr(builder);
    } else if (name == "fds") {
      fds(builder);
    } else if (name == "gather") {
      one_collective(builder, gather, ~0u);
    } else if (name == "allreduce") {
      one_collective(builder, allreduce, 40);
    } else if (name == "iallgather") {
      one_collective(builder, allgather, 64);
    } else if (name == "any-source" || name == "any-tag" || name == "any") {
      wild(builder, name == "any-source" ? 0 : name == "any-tag" ? 1 : 2);
    } else if (name == "reverse") {
      reverse(builder);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace patterns
