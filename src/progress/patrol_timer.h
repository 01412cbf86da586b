// PatrolTimer: when the message thread on patrol looks. Soon after the rank has left MPI, and then
// seldom: a look takes the core from a rank that waits in MPI, where it is in good hands. Thread:
// set() by the holder of the engine; take() by the message thread, without it. Owner: the handoff,
// which makes and closes the descriptor. Invariant: while it is on, the next look is due within
// slow_tick_us.
#pragma once
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace headway::progress {

class PatrolTimer {
 public:
  static constexpr uint32_t tick_us = 1000;       // after the rank has left
  static constexpr uint32_t slow_tick_us = 8000;  // while it is inside

  int fd = -1;  // a timerfd, readable when it has gone off; -1: there is none

  // It has gone off since it was set. Who leaves at that very moment may not see it yet: then the
  // next look is a slow one.
  bool is_slow() const { return is_slow_.load(std::memory_order_relaxed); }
  void set(bool on) {
    itimerspec when{};
    if (on) {
      when.it_value.tv_nsec = long(tick_us) * 1000;
      when.it_interval.tv_nsec = long(slow_tick_us) * 1000;
    }
    is_slow_.store(false,
                   std::memory_order_relaxed);  // pairs with nothing: late by one look at most
    timerfd_settime(fd, 0, &when, nullptr);
  }
  // It went off; the descriptor must not stay readable.
  void take() {
    uint64_t times;
    (void)!read(fd, &times, sizeof times);
    is_slow_.store(true, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> is_slow_{false};
};

}  // namespace headway::progress
