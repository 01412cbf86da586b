#include "common/pace.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

namespace apps {
namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

Pace::Pace(double mhz, double cycles_per_item)
    : seconds_per_item_(mhz > 0 ? cycles_per_item / (mhz * 1e6) : 0) {
  // The kernel may end a sleep 50 us late to save power; here lateness would add up row by row.
  if (seconds_per_item_ > 0) prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
}

void Pace::start() {
  if (seconds_per_item_ > 0) deadline_ = now();
}

void Pace::done(long items) {
  if (seconds_per_item_ == 0) return;
  deadline_ += static_cast<double>(items) * seconds_per_item_;
  if (deadline_ - now() > kLead) sleep_until_deadline();
}

void Pace::finish() {
  if (seconds_per_item_ == 0) return;
  const double lag = now() - deadline_;
  if (lag > 0) {
    late_ += lag;
  } else {
    sleep_until_deadline();
  }
}

void Pace::sleep_until_deadline() const {
  timespec t;
  t.tv_sec = static_cast<time_t>(deadline_);
  t.tv_nsec = static_cast<long>((deadline_ - static_cast<double>(t.tv_sec)) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

}  // namespace apps
