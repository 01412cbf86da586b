#include "common/pace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>

namespace apps {
namespace {

constexpr double kShort = 30e-6;  // a piece that took no longer did not wait for anything

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

// How many times slower (below 1: faster) the simulated cluster around us is than the one it
// imitates.
double dilation() {
  const char* const given = getenv("CLUSTER_DILATION");
  const double factor = given != nullptr ? strtod(given, nullptr) : 1;
  return factor > 0 ? factor : 1;
}

}  // namespace

// Waking costs some microseconds: all programs together may be woken 50,000 times a second.
Pace::Pace(double mhz, double cycles_per_item, int programs)
    : seconds_per_item_(mhz > 0 ? dilation() * cycles_per_item / (mhz * 1e6) : 0),
      lead_(std::max(100e-6, programs * 20e-6)) {
  // The kernel may end a sleep 50 us late to save power; here lateness would add up row by row.
  if (seconds_per_item_ > 0) prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
}

void Pace::start() {
  if (seconds_per_item_ == 0) return;
  mark_ = mark();
  deadline_ = seen_ = mark_.time;
}

void Pace::done(long items) {
  if (seconds_per_item_ == 0) return;
  deadline_ += static_cast<double>(items) * seconds_per_item_;
  const double time = now();
  if (time - seen_ > kShort) add_blocked();
  seen_ = time;
  if (deadline_ - time > lead_) sleep_until_deadline();
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

Pace::Mark Pace::mark() {
  rusage used;
  getrusage(RUSAGE_THREAD, &used);
  return {now(), seconds(used.ru_utime) + seconds(used.ru_stime), used.ru_nvcsw};
}

// Who is put aside for another program did not wait: the switch was not voluntary.
void Pace::add_blocked() {
  const Mark before = mark_;
  mark_ = mark();
  if (mark_.waits == before.waits) return;
  const double waited = (mark_.time - before.time) - (mark_.processor - before.processor);
  if (waited <= 0) return;
  deadline_ += waited;
  blocked_ += waited;
}

void Pace::sleep_until_deadline() {
  timespec t;
  t.tv_sec = static_cast<time_t>(deadline_);
  t.tv_nsec = static_cast<long>((deadline_ - static_cast<double>(t.tv_sec)) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
  mark_ = mark();
  seen_ = mark_.time;
}

}  // namespace apps
