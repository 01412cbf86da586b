// SpinLock: an exchange lock for a few instructions. Thread: any. Not recursive.
#pragma once
#include <atomic>
#include <cstdint>
#include <sched.h>

#include "base/check.h"

namespace headway::base {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield" ::: "memory");
#endif
}

class SpinLock {
 public:
  bool try_lock() {
    if (held_.load(std::memory_order_relaxed) ||
        held_.exchange(1, std::memory_order_acquire)) {  // pairs with unlock
      return false;
    }
#if defined(HEADWAY_DEBUG)
    holder_.store(__builtin_thread_pointer(), std::memory_order_relaxed);
#endif
    return true;
  }
  void lock() {
    HEADWAY_CHECK(!is_mine());
    for (int tries = 0; !try_lock(); ++tries) {
      // The holder may be on this very core: spinning would only keep it from running.
      if (tries < 64) {
        cpu_relax();
      } else {
        sched_yield();
      }
    }
  }
  // False: nobody has let go of it for long. Its holder may be in a signal handler of the program,
  // which waits for whoever calls this.
  bool lock_soon() {
    constexpr int spins = 64, yields = 16;  // it may be on this very core
    for (int tries = 0; tries < spins + yields; ++tries) {
      if (try_lock()) return true;
      if (tries < spins) {
        cpu_relax();
      } else {
        sched_yield();
      }
    }
    return false;
  }
  void unlock() {
    HEADWAY_CHECK(is_mine());
#if defined(HEADWAY_DEBUG)
    holder_.store(nullptr, std::memory_order_relaxed);
#endif
    held_.store(0, std::memory_order_release);  // pairs with try_lock
  }
  bool is_held() const { return held_.load(std::memory_order_relaxed) != 0; }
  // By this thread. For checks only: who holds it is not noted elsewhere.
#if defined(HEADWAY_DEBUG)
  bool is_mine() const {
    return holder_.load(std::memory_order_relaxed) == __builtin_thread_pointer();
  }
#else
  bool is_mine() const;
#endif

 private:
  std::atomic<uint32_t> held_{0};
#if defined(HEADWAY_DEBUG)
  std::atomic<void*> holder_{nullptr};
#endif
};

class SpinGuard {
 public:
  explicit SpinGuard(SpinLock& lock) : lock_(lock) { lock_.lock(); }
  ~SpinGuard() { lock_.unlock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  SpinLock& lock_;
};

// Holds it, unless that would take long.
class SoonGuard {
 public:
  explicit SoonGuard(SpinLock& lock) : lock_(lock), holds_(lock.lock_soon()) {}
  ~SoonGuard() {
    if (holds_) lock_.unlock();
  }
  bool holds() const { return holds_; }
  SoonGuard(const SoonGuard&) = delete;
  SoonGuard& operator=(const SoonGuard&) = delete;

 private:
  SpinLock& lock_;
  const bool holds_;
};

}  // namespace headway::base
