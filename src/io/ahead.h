// Ahead: sees that the reads of a rank follow a pattern, and says where the next one will be, so
// that the system can fetch it meanwhile. Reads that touch each other are left to the system, which
// sees them itself. Thread: any, one at a time (its own lock). Owner: the file. Invariant: nothing
// is said before three reads have kept the same distance, each as long as it pays to fetch.
#pragma once
#include <cstdint>

#include "base/spin_lock.h"

namespace headway::io {

class Ahead {
 public:
  // A read of bytes [low, high) of the file begins. True: the next one is expected at `next`, as
  // long as this one.
  bool note(int64_t low, int64_t high, int64_t& next) {
    const base::SpinGuard guard(lock_);
    const int64_t distance = low - low_;
    const bool again = is_known_ && distance == distance_ && distance != 0;
    const bool touches = distance == high - low || distance == low - high;
    distance_ = is_known_ ? distance : 0;
    is_known_ = true;
    low_ = low;
    if (!again || touches || high - low < least) return false;
    return !__builtin_add_overflow(low, distance, &next) && next >= 0;
  }

 private:
  static constexpr int64_t least = 64 << 10;

  base::SpinLock lock_;
  bool is_known_ = false;
  int64_t low_ = 0, distance_ = 0;  // of the last read, and from the one before it
};

}  // namespace headway::io
