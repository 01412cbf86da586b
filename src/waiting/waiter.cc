#include "waiting/waiter.h"

#include <sched.h>

#include "base/clock.h"

namespace headway::waiting {
namespace {

constexpr uint32_t clock_every = 64;          // idle turns between two looks at the clock
constexpr uint64_t long_yield_ns = 100'000;   // somebody else computes on this core
constexpr uint64_t yield_for_ns = 1'000'000;  // then sleep
constexpr uint32_t naps_after_long_yield = 64;
constexpr int sleep_ms = 500;  // a safety net: Counters::late_wakes tells if it was needed

}  // namespace

void Waiter::glance() {
  engine.advance_for(nullptr);
  engine.handoff.run_user_calls();
}

void Waiter::idle(Turn& turn, protocols::Peer*) {
  progress::Handoff& handoff = engine.handoff;
  if (handoff.run_user_calls()) return;
  if (!turn.polling) {
    if (handoff.is_polled()) {
      handoff.park();
    } else {
      handoff.set_poller(true);
      turn.polling = true;
    }
    return;
  }
  ++turn.idle;
  if (policy_.crowded) {
    rest(turn);
  } else if (turn.idle % clock_every == 0) {
    const uint64_t now = base::now_ns();
    if (turn.idle == clock_every) {
      turn.since = now;
    } else if (now - turn.since > policy_.spin_ns) {
      rest(turn);
    }
  }
  // Last of all: whoever comes in now may complete what is awaited, and that is to be seen before
  // this thread sleeps.
  handoff.breathe();
}

void Waiter::rest(Turn& turn) {
  if (turn.idle == 1) turn.since = 0;
  const uint64_t before = base::now_ns();
  if (turn.since == 0) turn.since = before;
  if (naps_ > 0 || before - turn.since > yield_for_ns) {
    if (naps_ > 0) --naps_;
    engine.handoff.sleep(sleep_ms);
    return;
  }
  sched_yield();
  if (base::now_ns() - before > long_yield_ns) naps_ = naps_after_long_yield;
}

}  // namespace headway::waiting
