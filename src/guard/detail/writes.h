// Writes: one way to learn which pages the program has written. There are two: watched_writes (the
// system keeps a bit) and signalled_writes (mprotect and SIGSEGV, the prefetching paper's). Thread:
// the holder of the engine. Owner: Versions. Invariant: a write after collect() has said that a
// page was written, or that it was not, is told by the next collect().
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/outcome.h"
#include "base/vec.h"
#include "guard/detail/stamps.h"
#include "guard/mechanism.h"

namespace headway::guard {

inline bool overlap(Range a, Range b) { return a.base < b.end() && b.base < a.end(); }

// Ranges that somebody uses, each as often as it was asked for.
class Uses {
 public:
  [[nodiscard]] bool add(Range range) {
    if (Use* use = find(range)) return ++use->count, true;
    return uses_.push({range, 1});
  }
  // True: that was its last user.
  bool remove(Range range) {
    Use* use = find(range);
    if (!use || --use->count > 0) return false;
    uses_.remove_unordered(size_t(use - uses_.begin()));
    return true;
  }
  bool any(Range range) const {
    for (const Use& use : uses_) {
      if (overlap(use.range, range)) return true;
    }
    return false;
  }
  template <class F>
  void each(F f) const {
    for (const Use& use : uses_) f(use.range);
  }
  void clear() { uses_.clear(); }

 private:
  struct Use {
    Range range;
    uint32_t count;
  };
  Use* find(Range range) {
    for (Use& use : uses_) {
      if (use.range.base == range.base && use.range.pages == range.pages) return &use;
    }
    return nullptr;
  }

  base::Vec<Use> uses_;
};

class Writes {
 public:
  // Of pages that were never followed: one is pinned or cannot be told from a pinned one. What it
  // holds stays; for a moment its pages are elsewhere.
  virtual bool is_held(Range range) = 0;
  // Whatever it was before, all of the range counts as written. False: it is not followed.
  virtual bool follow(Range range) = 0;
  // Pages written since the last time get the stamp; their number is added. False: something of it
  // is not followed, and what was written of the range is not known.
  virtual bool collect(Range range, uint32_t stamp, uint64_t& written) = 0;
  // Nobody uses the range any more; pages that others use stay followed.
  virtual void release(Range range, const Uses& others) = 0;
  // Something of it is gone; the rest is as nobody had followed it, until it is followed anew.
  virtual void lose(Range range) = 0;
  // The guard is about to close pages of it.
  virtual void yield(Range range) = 0;
  // It has opened them all.
  virtual void regain(Range range) = 0;

 protected:
  ~Writes() = default;
};

}  // namespace headway::guard
