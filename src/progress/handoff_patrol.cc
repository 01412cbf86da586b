// The handoff while the message thread is on patrol (patrol.h).
#include <sys/timerfd.h>
#include <unistd.h>

#include "progress/handoff.h"

namespace headway::progress {

// False: it is to be armed, or there is nothing to look after. Where pages are closed it always is:
// whoever touches one waits.
bool Handoff::leave_to_patrol() {
  if (sleepers_ || pending == passive || !with_thread_) return false;
  patrol_.leaves();
  if (!patrol_.is_due() || is_armed_ || !quiet_ || poller_) [[unlikely]]
    return false;
  if (!patrol_.is_on()) {
    patrol_.begin();
    set_patrol_timer(true);
    ++counters.patrols;
  } else if (patrol_is_slow_.load(std::memory_order_relaxed)) [[unlikely]] {
    set_patrol_timer(true);
  }
  if (patrol_.is_look_due()) {
    (void)work_->advance();
    patrol_.leaves_only_now();
    // A rank that tests in a loop leaves its copies to the thread, which nothing else would wake.
    if (work_->hand_on()) return false;
  }
  const bool call = called_;
  called_ = false;
  Shield::lower(unlock());
  if (call) bell_.ring();
  return true;
}

// Goes off soon, and then seldom: a look takes the core from a rank that waits in MPI, where it is
// in good hands. When it leaves, the next look is soon again.
void Handoff::set_patrol_timer(bool on) {
  itimerspec when{};
  if (on) {
    when.it_value.tv_nsec = long(Patrol::tick_us) * 1000;
    when.it_interval.tv_nsec = long(Patrol::slow_tick_us) * 1000;
  }
  patrol_is_slow_.store(false, std::memory_order_relaxed);
  timerfd_settime(patrol_timer_, 0, &when, nullptr);
}

// A tick of the patrol: the rank that is away for long has the thread work for it, and arms itself
// from then on.
void Handoff::look_after() {
  uint64_t times;
  (void)!read(patrol_timer_, &times, sizeof times);
  ++counters.patrol_looks;
  // One who leaves just now may not see that yet: then the next look is a slow one.
  patrol_is_slow_.store(true, std::memory_order_relaxed);
  if (!take_as_thread()) return;  // it is inside MPI
  const bool overdue = patrol_.is_on() && patrol_.take_overdue();
  const bool idle = !patrol_.note_look();
  if (idle) patrol_.end();
  set_patrol_timer(patrol_.is_on());
  if (overdue && !sleepers_) {
    work_as_owner();
  } else {
    unlock();
  }
}

}  // namespace headway::progress
