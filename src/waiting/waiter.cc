#include "waiting/waiter.h"

#include <sched.h>
#include <unistd.h>

#include "base/call_site.h"
#include "base/clock.h"
#include "waiting/elsewhere.h"

namespace headway::waiting {
namespace {

constexpr uint32_t attend_after = 4;  // vain looks; then this wait is one
constexpr uint32_t clock_every = 64;  // vain looks between two looks at the clock
// A yield that took as long as a time slice: somebody computes on this core. Turns of waiting
// ranks take 3 us each, those of ranks that compute a little some tens.
constexpr uint64_t long_yield_ns = 1'000'000;
constexpr uint32_t soon = 16;  // two long yields within so many: it was no accident
constexpr uint32_t calm = 64;  // short yields after which the last nap is forgotten
constexpr uint32_t least_naps = 16;
// Tests in vain that come sooner one after the other are a loop that waits. One that is for the
// same as the test before it yields; others after so long: a list of requests that are tested one
// by one is to be looked through.
constexpr uint64_t loop_ns = 20'000, before_yield_ns = 500;
constexpr uint64_t testers_period_ns = 50'000'000;  // a few turns of all threads on one core
// Two looks at the clock of one who spins that are so far apart: somebody else had the core.
constexpr uint64_t away_ns = 200'000;
constexpr uint64_t strangers_stay_ns = 1'000'000'000;
// So many times as long as else a rank yields before it sleeps, while strangers compute here.
constexpr uint32_t beside_strangers_times = 16;
// Between two leaves of a partner's core. Longer and longer where the system keeps both together:
// it may know better, and to go where others queue can take their time slices.
constexpr uint64_t first_part_ns = 4'000'000, longest_part_ns = 256'000'000;
constexpr uint64_t first_nap_ns = 4'000'000, longest_nap_ns = 64'000'000;

}  // namespace

void Waiter::await_open(const protocols::UserMemory::Extent* extents, size_t count) {
  const auto are_open = [&] {
    for (size_t i = 0; i < count; ++i) {
      const protocols::UserMemory::Extent& extent = extents[i];
      if (extent.from < extent.to &&
          engine.release().is_closed(extent.from, size_t(extent.to - extent.from))) {
        return false;
      }
    }
    return true;
  };
  if (!are_open()) until_open(are_open);
}

bool Waiter::glance() {
  progress::Handoff& handoff = engine.handoff();
  HEADWAY_CHECK(handoff.is_mine());
  const bool moved = engine.advance_for(nullptr);
  engine.note_look();
  return handoff.run_user_calls() || moved;
}

void Waiter::test_in_vain(uint64_t what) {
  const uint64_t now = base::now_ns();
  if (!policy_.crowded && !many_threads_test(now)) return;
  const bool again = what == vain_what_ && now - vain_last_ <= loop_ns;
  if (now - vain_last_ > loop_ns) vain_since_ = now;
  vain_last_ = now;
  vain_what_ = what;
  if (!again && now - vain_since_ < before_yield_ns) return;
  // Where threads of one rank test in turns nothing is to be learnt: it is another one each time.
  if (policy_.crowded && linger_.goes_on(now)) return;
  progress::Handoff& handoff = engine.handoff();
  handoff.stay();
  handoff.yield();
  glance();
  vain_since_ = vain_last_ = base::now_ns();
}

// Whether more threads of this rank test, each in a loop of its own, than have a core.
bool Waiter::many_threads_test(uint64_t now) {
  if (now - testers_since_ > testers_period_ns) {
    testers_before_ = now - testers_since_ > 2 * testers_period_ns ? 0 : testers_now_;
    testers_now_ = 0;
    testers_since_ = now;
  }
  const void* const self = __builtin_thread_pointer();
  uint32_t i = 0;
  while (i < testers_now_ && testers_[i] != self) ++i;
  if (i == testers_now_ && i < most_testers) testers_[testers_now_++] = self;
  return testers_now_ > threads_most_ || testers_before_ > threads_most_;
}

// `wait.idle` is 0 in the first vain look of a wait, and after something has moved.
void Waiter::note_vain(const Wait& wait, const protocols::Peer* hint) {
  if (wait.idle == 0) base::count(where_.moves);
  base::count(where_.vain);
  where_.awaited.store(hint ? int(hint->rank) : base::nobody, std::memory_order_relaxed);
}

bool Waiter::idle(Wait& wait, protocols::Peer* hint) {
  progress::Handoff& handoff = engine.handoff();
  handoff.stay();
  note_vain(wait, hint);
  if (!handoff.user_calls.empty() || base::events_wait_in_wait()) [[unlikely]]
    return run_user_functions(wait, handoff);
  if (!wait.polling) {
    if (handoff.is_polled()) return handoff.park(*wait.sleep_ms, *wait.awaited);
    handoff.set_poller(true);
    wait.polling = true;
    wait.idle = 1;  // whoever is called to poll begins as one who has just come
    wait.since = 0;
    return true;
  }
  if (++wait.idle == attend_after) handoff.attend();
  const bool in_turns = handoff.is_polled_in_turns();
  const bool rests =
      policy_.crowded || in_turns || (wait.idle % clock_every == 0 && has_spun(wait, hint));
  // Its wait looks before anybody is let in.
  if (rests && !rest(wait)) return false;
  // Last of all: whoever comes in now may complete what is awaited, and that is to be seen before
  // this thread sleeps. Who polls in turns has let all of them in.
  if (!in_turns) handoff.breathe();
  return true;
}

// Reductions of schedules, and callbacks of tools for events. Those stand first in the list: the
// first call is taken out before the engine is given up, so nobody else sees what is on this stack.
bool Waiter::run_user_functions(Wait& wait, progress::Handoff& handoff) {
  stop_polling(wait);
  engine.end_wait();  // they may take long
  progress::UserCall delivery;
  delivery.run = [](progress::UserCall*) {
    auto* const deliver = base::deliver_in_wait.load(std::memory_order_relaxed);
    if (deliver) deliver();  // else another thread has changed who listens
  };
  delivery.finished = [](progress::UserCall*) {};
  if (base::events_wait_in_wait()) handoff.user_calls.push_front(&delivery);
  (void)handoff.run_user_calls();
  return true;
}

// Whether this wait has spun long enough. Only time in which it did spin counts: who comes back
// after a time slice of somebody else looks around before it gives the core away again.
bool Waiter::has_spun(Wait& wait, const protocols::Peer* hint) {
  const uint64_t now = base::now_ns();
  if (wait.idle == clock_every) {
    wait.since = now;
  } else if (now - wait.last > away_ns) {
    wait.since += now - wait.last;
    note_strangers(now);
  }
  wait.last = now;
  return shares_core(wait, hint) || now - wait.since > policy_.spin_ns;
}

// Who spins where its partner has to run waits for itself: one of the two goes, the other gives the
// core away. It happens to ranks that are not bound: the system likes to wake a sleeper where its
// waker runs, and who sleeps most of the time weighs nothing and is never moved again.
bool Waiter::shares_core(Wait& wait, const protocols::Peer* hint) {
  wait.partner = shm::Node::no_core;
  const int core = sched_getcpu();
  if (!engine.node().active() || core < 0) return false;
  engine.node().waits_on(uint32_t(core));
  if (!hint || !hint->in.attached()) return false;  // nothing has come from it over the node
  wait.partner = engine.node().core_of(hint->number);
  if (wait.partner != uint32_t(core)) return false;
  note_strangers(wait.last);
  return hint->number > engine.node().self() || !part(uint32_t(core));
}

// The later rank of the two goes.
bool Waiter::part(uint32_t core) {
  const uint64_t now = base::now_ns(), ago = now - parted_;
  if (ago < part_ns_) return false;
  part_ns_ = ago > 4 * part_ns_           ? first_part_ns
             : part_ns_ < longest_part_ns ? 2 * part_ns_
                                          : longest_part_ns;
  parted_ = now;
  Elsewhere elsewhere;
  return elsewhere.leave(core);
}

// A wait that lasts: what nobody asks for a short one. Other threads may wait meanwhile; then the
// launcher proves nothing anyway.
void Waiter::place(Wait& wait) {
  wait.placed = true;
  where_.site.store(base::outer_call_site(), std::memory_order_relaxed);
  where_.site_waits.store(where_.waits.load(std::memory_order_relaxed), std::memory_order_release);
}

bool Waiter::rest(Wait& wait) {
  progress::Handoff& handoff = engine.handoff();
  if (!wait.placed) place(wait);
  if (wait.idle == 1) wait.since = 0;
  const uint64_t before = base::now_ns();
  if (wait.since == 0) wait.since = before;
  const bool naps = naps_ > 0 || before < nap_until_;
  if (naps || before - wait.since > patience(before)) {
    if (naps_ > 0) --naps_;
    if (!handoff.is_polled_in_turns()) return sleep(wait, before < strangers_until_);
    // It is called when nobody polls any more.
    stop_polling(wait);
    return handoff.park(*wait.sleep_ms, *wait.awaited);
  }
  // Threads that poll in turns have the engine in turns, too. Else who waits keeps it.
  if (handoff.is_polled_in_turns()) {
    handoff.yield();
  } else {
    sched_yield();
  }
  wait.last = base::now_ns();
  judge_yield(before, wait.last);
  return true;
}

void Waiter::note_strangers(uint64_t now) {
  strangers_until_ = now + strangers_stay_ns;
  if (engine.node().active()) engine.node().tell_strangers(strangers_until_);
}

// How long a wait yields before it sleeps. A core whose rank sleeps is idle, and the system moves
// there whom it finds waiting for another core: the partner, whose time slice a stranger has. Then
// both have one core, and the stranger has the other: they take four times as long, and no part of
// the system sees anything wrong. So where strangers are, whoever has a core to itself waits on it
// for some of their time slices. Where somebody wants it, it is given away all the same.
uint64_t Waiter::patience(uint64_t now) const {
  if (policy_.crowded || !engine.node().active()) return policy_.yield_ns;
  const bool beside_strangers = now < engine.node().strangers_until();  // also this rank's own
  return beside_strangers ? beside_strangers_times * policy_.yield_ns : policy_.yield_ns;
}

// Beside strangers it is not to be woken where its partner is.
bool Waiter::sleep(Wait& wait, bool beside_strangers) {
  Elsewhere elsewhere;
  if (beside_strangers && wait.partner != shm::Node::no_core &&
      int(wait.partner) != sched_getcpu()) {
    elsewhere.leave(wait.partner);
  }
  // Whoever finds this thread asleep knows that nothing has come for it.
  where_.asleep.store(gettid(), std::memory_order_relaxed);
  const bool woken = engine.handoff().sleep(*wait.sleep_ms);
  where_.asleep.store(0, std::memory_order_relaxed);
  wait.last = base::now_ns();
  // Where threads come and go it may have been woken for what one of them took, and would be again
  // at the next message: so it stays up for a while.
  if (threads_most_ != not_counted) wait.since = 0;
  return woken;
}

// Beside a rank that computes, a yield costs its time slice, and a sleeper is woken at once: then
// this thread naps for a while. Among ranks that wait or take short turns, a nap costs several
// times a yield, and makes the yields of others longer: so naps begin after the second long yield,
// last longer only if the first yields after them are long again, and end by themselves.
void Waiter::judge_yield(uint64_t before, uint64_t after) {
  if (after - before < long_yield_ns) [[likely]] {
    if (++short_yields_ >= calm) nap_ns_ = 0;
    return;
  }
  note_strangers(after);
  const bool again = short_yields_ < soon;
  short_yields_ = 0;
  if (!again) return;
  nap_ns_ = nap_ns_ == 0 ? first_nap_ns : nap_ns_ < longest_nap_ns ? 2 * nap_ns_ : longest_nap_ns;
  naps_ = least_naps;
  nap_until_ = after + nap_ns_;
}

}  // namespace headway::waiting
