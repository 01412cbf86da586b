// Locks: who has locked the memory of this rank in a window, and who waits for it. A word says who
// has it; ranks of the same host see it, and take and give it themselves as long as nobody waits.
// All others ask the owner, who lets them have it in turn. Thread: holder of the engine; the word
// is changed by any process that sees it. Owner: the window. Invariants: one has it alone, or
// several share it; whoever asked first has it first, so that nobody waits for ever behind those
// who share it; while somebody waits the word says so, and who gives it back tells the owner.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/vec.h"

namespace headway::rma {

// The low bits count those who share it.
class LockWord {
 public:
  enum class Kind : uint8_t { none, shared, exclusive };

  // `in_turn`: also if others wait. True: the caller has it now.
  bool take(Kind kind, bool in_turn = false) {
    uint64_t now = word_.load(std::memory_order_relaxed);
    for (;;) {
      const bool is_kept = now & alone || (kind == Kind::exclusive && (now & ~waited) != 0);
      if (is_kept || (!in_turn && now & waited)) return false;
      const uint64_t next = kind == Kind::exclusive ? now | alone : now + 1;
      // Pairs with give_back().
      if (word_.compare_exchange_weak(now, next, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
  }
  // True: somebody waits, and the owner has to hear of it.
  bool give_back(Kind kind) {
    const uint64_t before = kind == Kind::exclusive
                                ? word_.fetch_and(~alone, std::memory_order_acq_rel)
                                : word_.fetch_sub(1, std::memory_order_acq_rel);
    HEADWAY_CHECK(kind == Kind::exclusive ? before & alone : (before & ~(alone | waited)) != 0);
    return before & waited;
  }
  // By the owner. Before it looks whether it is free: whoever gives it back later sees that.
  void note_waiting(bool waits) {
    if (waits) {
      word_.fetch_or(waited, std::memory_order_acq_rel);
    } else {
      word_.fetch_and(~waited, std::memory_order_acq_rel);
    }
  }
  bool is_held() const { return (word_.load(std::memory_order_relaxed) & ~waited) != 0; }

 private:
  static constexpr uint64_t alone = uint64_t(1) << 63, waited = uint64_t(1) << 62;

  std::atomic<uint64_t> word_{0};
};

class Locks {
 public:
  using Kind = LockWord::Kind;

  // Of a window of so many ranks. False without memory.
  [[nodiscard]] bool prepare(size_t ranks) {
    return held_.resize(ranks) && waiting_.reserve(ranks);
  }
  // Where others see it, too; null: nowhere. Nobody has it yet.
  void use(LockWord* word) { word_ = word; }

  // By asking, not by the word.
  Kind held_by(uint32_t rank) const { return held_[rank]; }
  bool waits(uint32_t rank) const {
    for (const Waiting& one : waiting_) {
      if (one.rank == rank) return true;
    }
    return false;
  }

  // For a rank that neither has it nor waits: it has it at once, or later. Calls given(rank) for
  // each that has it now.
  template <class Given>
  void ask(uint32_t rank, Kind kind, Given&& given) {
    HEADWAY_CHECK(kind != Kind::none && held_[rank] == Kind::none && !waits(rank));
    (void)waiting_.push({rank, kind});  // has its room: each rank waits once
    serve(given);
  }
  // The rank, which asked for it, has it no more.
  template <class Given>
  void give_back(uint32_t rank, Given&& given) {
    HEADWAY_CHECK(held_[rank] != Kind::none);
    (void)word().give_back(held_[rank]);
    held_[rank] = Kind::none;
    serve(given);
  }
  // Somebody has given back the word.
  template <class Given>
  void serve(Given&& given) {
    while (!waiting_.empty()) {
      word().note_waiting(true);
      const Waiting first = waiting_[0];
      if (!word().take(first.kind, true)) return;
      for (size_t i = 1; i < waiting_.size(); ++i) waiting_[i - 1] = waiting_[i];
      waiting_.pop();
      held_[first.rank] = first.kind;
      if (waiting_.empty()) word().note_waiting(false);
      given(first.rank);
    }
  }

 private:
  struct Waiting {
    uint32_t rank;
    Kind kind;
  };
  LockWord& word() { return word_ ? *word_ : own_; }

  LockWord own_;
  LockWord* word_ = nullptr;
  base::Vec<Kind> held_;        // by rank
  base::Vec<Waiting> waiting_;  // in the order in which they asked
};

}  // namespace headway::rma
