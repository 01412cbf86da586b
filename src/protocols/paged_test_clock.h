// For tests: the clock of this program, which a test may stop and move by hand, so that what hangs
// on time repeats by a seed, and takes none. Thread: that of the test moves it, any reads it.
// Owner: the program: paged_test.cc defines clock_gettime() for all of it. Invariant: it does not
// go back while it is stopped.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace headway::protocols {

class StoppedClock {
 public:
  StoppedClock() { now().store(base::now_ns()); }
  ~StoppedClock() { now().store(0); }
  StoppedClock(const StoppedClock&) = delete;
  StoppedClock& operator=(const StoppedClock&) = delete;
  void move(uint64_t ns) { now().fetch_add(ns); }

  static std::atomic<uint64_t>& now() {  // ns; 0: it goes
    static std::atomic<uint64_t> ns{0};
    return ns;
  }
};

}  // namespace headway::protocols
