// The handoff while the message thread is on patrol (patrol.h).
#include "progress/handoff.h"

namespace headway::progress {

// Something is pending, or somebody else is inside. A row of calls for a moment is quickest.
void Handoff::leave_pending() {
  if (is_on_patrol() && patrol_.leaves_again()) [[likely]] {
    lock_.unlock();
  } else if (!leave_to_patrol()) {
    leave_slowly();
  }
}

// False: it is to be armed, or there is nothing to look after. Where pages are closed it always is:
// whoever touches one waits.
bool Handoff::leave_to_patrol() {
  if (sleepers_ || pending == passive || !with_thread_) return false;
  patrol_.leaves();
  if (!patrol_.is_due() || is_armed_ || !quiet_ || poller_) [[unlikely]]
    return false;
  if (!patrol_.is_on()) {
    patrol_.begin();
    patrol_timer_.set(true);
    ++counters.patrols;
  } else if (patrol_timer_.is_slow()) [[unlikely]] {
    patrol_timer_.set(true);
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

// A tick of the patrol: the rank that is away for long has the thread work for it, and arms itself
// from then on.
void Handoff::look_after() {
  patrol_timer_.take();
  ++counters.patrol_looks;
  if (!take_as_thread()) return;  // it is inside MPI
  const bool overdue = patrol_.is_on() && patrol_.take_overdue();
  const bool idle = !patrol_.note_look();
  if (idle) patrol_.end();
  patrol_timer_.set(patrol_.is_on());
  if (overdue && !sleepers_) {
    work_as_owner();
  } else {
    unlock();
  }
}

}  // namespace headway::progress
