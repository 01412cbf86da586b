// EngineLock: who holds it owns the engine. Free, it also says whether pages of the program are
// closed: then nobody takes it as quickly as otherwise, but first sees to its signals (shield.h).
// Thread: any. Owner: the handoff. Not recursive. Invariant: it is left as guarded whenever a page
// may be closed, so try_lock() succeeds only where none is.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace headway::progress {

class EngineLock {
 public:
  static constexpr uint32_t free = 0, held = 1;
  static constexpr uint32_t guarded = 2;  // free, and pages may be closed

  bool try_lock() { return try_lock_from(free); }
  // From `free` or `guarded`, as state() has told.
  bool try_lock_from(uint32_t state) {
    if (!state_.compare_exchange_strong(state, held,
                                        std::memory_order_acquire,  // pairs with unlock
                                        std::memory_order_relaxed)) {
      return false;
    }
#if defined(HEADWAY_DEBUG)
    holder_.store(__builtin_thread_pointer(), std::memory_order_relaxed);
#endif
    return true;
  }
  void unlock(uint32_t as = free) {
#if defined(HEADWAY_DEBUG)
    HEADWAY_CHECK(is_mine());
    holder_.store(nullptr, std::memory_order_relaxed);
#endif
    state_.store(as, std::memory_order_release);  // pairs with try_lock_from
  }
  uint32_t state() const { return state_.load(std::memory_order_relaxed); }
  bool is_held() const { return state() == held; }
#if defined(HEADWAY_DEBUG)
  // By this thread.
  bool is_mine() const {
    return holder_.load(std::memory_order_relaxed) == __builtin_thread_pointer();
  }
#endif

 private:
  std::atomic<uint32_t> state_{free};
#if defined(HEADWAY_DEBUG)
  std::atomic<void*> holder_{nullptr};
#endif
};

}  // namespace headway::progress
