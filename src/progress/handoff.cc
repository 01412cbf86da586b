#include "progress/handoff.h"

#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <linux/futex.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/own_thread.h"
#include "base/spin_lock.h"

namespace headway::progress {
namespace {

constexpr int most_pauses = 128;  // between two looks at the lock: 2 to 6 us

constexpr uint64_t admit_every_ns = 50'000;  // a handler comes no later into a wait
constexpr int leave_rounds = 4;
constexpr uint64_t leave_ns = 100'000;  // large pieces take longer than a few rounds are worth
constexpr uint32_t unwatch_after = 32;  // waits one after the other that needed no sleeper
constexpr size_t thread_stack = 256 << 10;

long futex(std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

bool add_to(int epoll, int fd, uint32_t events, uint64_t source) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = source;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

int make_timer() {
  return base::with_room(
      [] { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); });
}

}  // namespace

Outcome Handoff::start(Work* work, std::atomic<uint32_t>* armed, int sockets, bool with_thread,
                       uint32_t patrol_after) {
  work_ = work;
  armed_ = armed;
  if (const Outcome made = bell_.create(); made != Outcome::ok) return made;
  inner_ = base::with_room([] { return epoll_create1(EPOLL_CLOEXEC); });
  outer_ = base::with_room([] { return epoll_create1(EPOLL_CLOEXEC); });
  timer_ = make_timer();
  if (inner_ < 0 || outer_ < 0 || timer_ < 0) return Outcome::no_resource;
  if (!add_to(inner_, bell_.read_fd(), EPOLLIN, source_bell) ||
      !add_to(inner_, timer_, EPOLLIN, source_timer) || !add_to(outer_, inner_, EPOLLONESHOT, 0)) {
    return Outcome::no_resource;
  }
  if (const Outcome watched = watch(sockets); watched != Outcome::ok) return watched;
  if (!with_thread) return Outcome::ok;
  patrol_.start(patrol_after);
  if (patrol_after) {
    patrol_timer_.fd = make_timer();
    if (patrol_timer_.fd < 0 || !add_to(outer_, patrol_timer_.fd, EPOLLIN, source_patrol))
      return Outcome::no_resource;
  }
  with_thread_ = true;  // before it looks
  if (base::start_own_thread(thread_, thread_stack, false, thread_main, this)) return Outcome::ok;
  with_thread_ = false;
  return Outcome::no_resource;
}

uint64_t Handoff::thread_ns() const {
  clockid_t clock;
  timespec spent;
  if (!with_thread_ || pthread_getcpuclockid(thread_, &clock) != 0 ||
      clock_gettime(clock, &spent) != 0) {
    return 0;
  }
  return uint64_t(spent.tv_sec) * 1'000'000'000 + uint64_t(spent.tv_nsec);
}

// Level-triggered, as those in it are.
bool Handoff::join_sockets(int more) {
  HEADWAY_CHECK(joint_ < 0);
  joint_ = base::with_room([] { return epoll_create1(EPOLL_CLOEXEC); });
  if (joint_ < 0) return false;
  if (add_to(joint_, sockets_, EPOLLIN, source_sockets) &&
      add_to(joint_, more, EPOLLIN, source_sockets)) {
    return true;
  }
  ::close(joint_);
  joint_ = -1;
  return false;
}

Outcome Handoff::watch(int sockets) {
  if (sockets < 0) return Outcome::ok;
  if (sockets_ >= 0) {
    if (!join_sockets(sockets)) return Outcome::no_resource;
    if (sockets_watched_) set_sockets_watched(false);
    sockets = joint_;
  }
  sockets_ = sockets;
  set_sockets_watched(true);
  return sockets_watched_ ? Outcome::ok : Outcome::no_resource;
}

bool Handoff::listen(const char* name) {
  return bell_.listen(name) && add_to(inner_, bell_.call_fd(), EPOLLIN, source_bell);
}

Outcome Handoff::watch_faults(int fd) {
  return add_to(outer_, fd, EPOLLIN, source_faults) ? Outcome::ok : Outcome::no_resource;
}

Outcome Handoff::watch_deaths(int fd, void (*notice)()) {
  notice_death_ = notice;
  const int epoll = with_thread_ ? outer_ : inner_;
  return add_to(epoll, fd, EPOLLIN, source_deaths) ? Outcome::ok : Outcome::no_resource;
}

Outcome Handoff::watch_hosts(int fd) {
  return add_to(outer_, fd, EPOLLIN, source_hosts) ? Outcome::ok : Outcome::no_resource;
}

void Handoff::stop() {
  if (with_thread_) {
    stop_.store(true, std::memory_order_release);
    enter_contended();
    set_sockets_armed(true);
    const Shield::Held held = unlock();
    bell_.ring();
    Shield::lower(held);
    pthread_join(thread_, nullptr);
  }
  abandon();
}

void Handoff::abandon() {
  with_thread_ = false;
  for (int* fd : {&inner_, &outer_, &joint_, &timer_, &patrol_timer_.fd}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
  bell_.close();
}

// Whoever has the engine may take it again at once, several times: what it touches stays in its
// caches. So this side looks seldom, ever more so. And where pages are closed, signals are held
// back before the engine is taken, not after: one that came between the two would find it owned.
void Handoff::enter_contended() {
  Shield::Held held;
  bool contends = false;
  const uint64_t came = is_message_thread() ? 0 : base::ticks();
  for (int pauses = 8;;) {
    const uint32_t state = lock_.state();
    if (state == EngineLock::guarded && !held.up && shield_.has_handlers() &&
        !is_message_thread()) {
      held = Shield::raise();
    }
    if (state != EngineLock::held && lock_.try_lock_from(state)) break;
    if (!contends) contenders_.fetch_add(1, std::memory_order_relaxed);
    contends = true;
    if (pauses > most_pauses) {
      // The holder may be on this very core.
      sched_yield();
      pauses = most_pauses;
    }
    for (int i = 0; i < pauses; ++i) base::cpu_relax();
    pauses *= 2;
  }
  if (contends) contenders_.fetch_sub(1, std::memory_order_relaxed);
  HEADWAY_CHECK(is_mine() && !shield_.held.up);
  if (came && patrol_.is_away()) patrol_.came_at(came);
  if (!held.up) return;
  shield_.held = held;
  shield_.closes = true;  // or the last page has opened meanwhile: unlock() sees that
  quiet_ = false;
}

// What it answers is to be lowered, last of all: handlers run then.
Shield::Held Handoff::unlock() {
  if (!shield_.closes) [[likely]] {
    HEADWAY_CHECK(!shield_.held.up);
    lock_.unlock();
    return {};
  }
  const Shield::Held held = shield_.held;
  shield_.held = {};
  shield_.closes = shield_.any_closed();
  refresh_quiet();
  lock_.unlock(shield_.closes ? EngineLock::guarded : EngineLock::free);
  return held;
}

// After a moment without it, in a call that has not ended.
void Handoff::enter_again(Driver as) {
  if (!take_free()) enter_contended();
  driver = as;
  if (is_armed_) disarm();
}

void Handoff::closes() {
  shield_.closes = true;
  quiet_ = false;
  if (!shield_.held.up && shield_.has_handlers() && !is_message_thread()) {
    shield_.held = Shield::raise();
  }
}

// Pages are closed. A thread that waits long keeps no handler out for longer than a moment.
void Handoff::admit_handlers_slowly() {
  Shield::Held& held = shield_.held;
  if (!held.up) {
    // The handler came after this thread: another one has installed it.
    if (shield_.any_closed() && shield_.has_handlers() && !is_message_thread()) {
      held = Shield::raise();
    }
    return;
  }
  const uint64_t now = base::now_ns();
  if (now - held.since < admit_every_ns) return;
  held.since = now;
  if (!Shield::is_awaited(held)) return;
  const Driver mine = driver;
  let_poll();
  Shield::lower(unlock());
  enter_again(mine);
}

// Long enough for enter_contended() to look again where it has a core of its own; a yield where it
// has not.
void Handoff::give_way() {
  const Driver mine = driver;
  let_poll();
  Shield::lower(unlock());
  for (int look = 0; look < 2 * most_pauses && contenders_.load(std::memory_order_relaxed);
       ++look) {
    base::cpu_relax();
  }
  if (contenders_.load(std::memory_order_relaxed)) sched_yield();
  enter_again(mine);
}

void Handoff::yield() {
  const Driver mine = driver;
  let_poll();
  Shield::lower(unlock());
  sched_yield();
  enter_again(mine);
}

void Handoff::remind(uint32_t us, While on) {
  if (!with_thread_ && !sleepers_) return;
  const uint64_t at = base::now_ns() + uint64_t(us) * 1000;
  reminds_while_ = reminding_ && reminds_while_ == While::always ? While::always : on;
  if (reminding_ && remind_at_ <= at) return;
  itimerspec when{};
  when.it_value.tv_nsec = long(us) * 1000;
  reminding_ = timerfd_settime(timer_, 0, &when, nullptr) == 0;
  remind_at_ = at;
}

void Handoff::call_thread() { called_ = with_thread_ || sleepers_; }

// Lets go of the engine, and calls who was to be called: not before, or the message thread, woken
// on this very core, finds the engine taken and has its user start again, and again: 60 ms were
// seen.
void Handoff::let_go() {
  const bool call = called_;
  called_ = false;
  const Shield::Held held = unlock();
  if (call) bell_.ring();
  Shield::lower(held);
}

// Lets go of the engine with nothing to look after.
void Handoff::rest() {
  patrol_.rests();
  Shield::lower(unlock());
}

// Takes what rang. Only by who owns the engine, and who looks at everything afterwards.
void Handoff::drain() {
  bell_.drain();
  rung_ = false;
}

// Takes a reminder that went off; the descriptor must not stay readable.
void Handoff::take_reminder() {
  uint64_t times;
  if (reminding_ && read(timer_, &times, sizeof times) > 0) reminding_ = false;
}

// It would wake the thread in the midst of what this one does itself, perhaps on its core.
void Handoff::forget_reminder() {
  const itimerspec never{};
  timerfd_settime(timer_, 0, &never, nullptr);
  reminding_ = false;
}

// The rank enters MPI, and was away with work pending.
void Handoff::come_back() {
  // A thread that sleeps in MPI is woken by it, and one that comes in beside it may park at once.
  if (reminding_ && reminds_while_ == While::away && !sleepers_) [[unlikely]]
    forget_reminder();
  if (patrol_.is_away()) patrol_.comes();
  if (is_armed_) disarm();
}

void Handoff::disarm() {
  HEADWAY_CHECK(is_mine());
  // A thread of ours sleeps in MPI: whoever has something for this process must go on ringing.
  if (sleepers_ > 0) return;
  // Taken by a ringer: its bell is under way.
  rung_ |= armed_->load(std::memory_order_relaxed) == 0;
  armed_->store(0, std::memory_order_relaxed);
  is_armed_ = false;
  work_->awake();
}

void Handoff::attend_slowly() {
  if (sleepers_) return;
  if (sockets_armed_) {
    set_sockets_armed(false);
  } else if (sockets_watched_ && ++attended_ >= unwatch_after) {
    set_sockets_watched(false);
  }
}

void Handoff::set_sockets_watched(bool watched) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = source_sockets;
  const int change = watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
  if (epoll_ctl(inner_, change, sockets_, &event) == 0) sockets_watched_ = watched;
}

// Before anybody sleeps on the inner epoll, or on the outer one.
void Handoff::watch_sockets() {
  attended_ = 0;
  if (!sockets_watched_ && sockets_ >= 0) [[unlikely]]
    set_sockets_watched(true);
}

void Handoff::arm_outer(bool armed) const {
  epoll_event event{};
  event.events = armed ? uint32_t(EPOLLIN | EPOLLONESHOT) : 0u;
  epoll_ctl(outer_, EPOLL_CTL_MOD, inner_, &event);
}

void Handoff::set_sockets_armed(bool armed) {
  arm_outer(armed);
  sockets_armed_ = armed;
}

// Sets the armed word, looks once more, lets go. False: somebody kicked while we held the engine,
// and it is owned again.
bool Handoff::arm_and_unlock() {
  HEADWAY_CHECK(is_mine());
  ++counters.arms;
  // Its reason is seen to below. Left in, it would fire the one shot at once, and our thread,
  // woken on this very core while the lock is held, would kick, and so on: 100 us were seen.
  if (rung_) drain();
  const uint64_t began = base::now_ns();
  for (int round = 0;; ++round) {
    armed_->store(work_->wanted(), std::memory_order_relaxed);
    is_armed_ = true;
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with shm::Node::wake
    if (!work_->advance()) break;
    disarm();
    work_->hand_on();
    if (pending == passive) {
      called_ = false;
      rest();
      return true;
    }
    if (round == leave_rounds || base::now_ns() - began > leave_ns) {
      leave_to_thread();
      return true;
    }
  }
  watch_sockets();
  // MOD looks at the readiness again, so what came before it still fires.
  if (!sockets_armed_) set_sockets_armed(true);
  if (patrol_.is_away()) patrol_.leaves_only_now();  // what it has looked at may have taken long
  return unlock_armed();
}

// Data keeps coming: the program must not be held here for it. Our own thread goes on, and arms. It
// is let in once the engine is free: armed before, the data would wake it at once, it would kick,
// and whoever leaves would look again, and again: 64 MB were seen to come before that ended.
void Handoff::leave_to_thread() {
  HEADWAY_CHECK(is_mine() && !is_armed_ && with_thread_);
  ++counters.self_rings;
  called_ = false;
  if (patrol_.is_away()) patrol_.leaves_only_now();
  watch_sockets();
  sockets_armed_ = false;  // whoever comes before they are arms them, too
  const Shield::Held held = unlock();
  bell_.ring();
  arm_outer(true);
  Shield::lower(held);
}

bool Handoff::unlock_armed() {
  const bool call = called_;
  called_ = false;
  const Shield::Held held = unlock();
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with kick_ in work_as_thread
  if (!kick_.load(std::memory_order_relaxed) || !kick_.exchange(0, std::memory_order_acq_rel)) {
    if (call) bell_.ring();
    Shield::lower(held);
    return true;
  }
  Shield::lower(held);
  // The thread took the one shot while we still held the engine: the sockets are not armed.
  enter_contended();
  sockets_armed_ = false;
  if (sleepers_) {
    // Another thread of the program went to sleep in MPI meanwhile: it works for all.
    called_ = true;
    let_go();
    return true;
  }
  disarm();
  drain();
  take_reminder();
  called_ = true;  // what it was to remind of may still be there
  return false;
}

void Handoff::leave_slowly() {
  let_poll();
  if (sleepers_) {
    // That thread is armed for everything, and works for all.
    work_->hand_on();
    let_go();
    return;
  }
  if (pending == passive || !with_thread_) {
    rest();
    return;
  }
  if (is_worked_for()) {
    let_go();
    return;
  }
  // A brief call, and nobody rang: all is as the last one left it.
  if (is_armed_ && armed_->load(std::memory_order_relaxed) != 0) {
    if (unlock_armed()) return;
  } else if (is_armed_) {
    disarm();
  }
  work_->hand_on();
  if (pending == passive) {
    called_ = false;
    rest();
    return;
  }
  while (!arm_and_unlock()) {
  }
}

void Handoff::tell_dozers(News news) {
  if (sleepers_) bell_.ring();
  for (Parked* one = parked_.first(); one; one = one->list_next) {
    if (news != News::other && one->awaited.is_there &&
        (news == News::message || !one->awaited.is_there(one->awaited.what))) {
      continue;
    }
    tell(*one);
  }
}

// The one that has parked longest. Where all have been told of something, each of them polls or
// leaves.
void Handoff::call_successor() {
  Parked* one = parked_.first();
  while (one && one->told.load(std::memory_order_relaxed)) one = one->list_next;
  if (!one) return;
  successor_ = one;
  tell(*one);
}

void Handoff::tell(Parked& one) {
  if (one.told.load(std::memory_order_relaxed)) return;
  one.told.store(1, std::memory_order_release);  // pairs with park
  futex(&one.told, FUTEX_WAKE, 1, nullptr);
}

bool Handoff::park(int timeout_ms, const Awaited& awaited) {
  Parked self;
  self.awaited = awaited;
  parked_.push_back(&self);
  refresh_quiet();
  Shield::lower(unlock());
  const timespec at_most{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
  const bool timed_out = futex(&self.told, FUTEX_WAIT, 0, &at_most) != 0 && errno == ETIMEDOUT;
  enter_contended();
  driver = Driver::waiting;
  parked_.remove(&self);
  const bool is_called = successor_ != nullptr;
  if (successor_ == &self) successor_ = nullptr;
  refresh_quiet();
  if (is_armed_) disarm();
  // Whoever tells it does so under the lock.
  if (!timed_out || self.told.load(std::memory_order_relaxed)) return true;
  if (timeout_ms < long_sleep_ms) return true;
  const bool has_poller = poller_ != 0 || is_called;
  counters.late_wakes += !has_poller;  // nobody told it that it is to poll
  return !has_poller;
}

bool Handoff::sleep(int timeout_ms) {
  ++counters.sleeps;
  armed_->store(~0u, std::memory_order_relaxed);
  is_armed_ = true;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with shm::Node::wake
  if (work_->advance()) {
    disarm();
    return true;
  }
  // Disarmed, or the kernel wakes the message thread for what this thread will take.
  if (sockets_armed_) set_sockets_armed(false);
  watch_sockets();
  ++sleepers_;
  refresh_quiet();   // what completes while it is handed on rings
  work_->hand_on();  // what cannot move yet wakes us by the clock
  driver = Driver::nobody;
  show_waiting(false);
  let_go();
  epoll_event events[4];
  int count = epoll_wait(inner_, events, 4, timeout_ms);
  enter_contended();
  driver = Driver::waiting;
  show_waiting(poller_ != 0);
  --sleepers_;
  refresh_quiet();
  if (is_armed_) disarm();
  // A ring that came after the time-out is not a lost one.
  if (count == 0) count = epoll_wait(inner_, events, 4, 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 == source_bell) drain();
    if (events[i].data.u64 == source_timer) take_reminder();
    if (events[i].data.u64 == source_deaths) notice_death_();
  }
  if (count != 0 || timeout_ms < long_sleep_ms) return true;
  if (!work_->advance()) return false;
  ++counters.late_wakes;
  return true;
}

bool Handoff::run_user_calls_slowly() {
  HEADWAY_CHECK(is_mine() && !is_message_thread());
  const Driver mine = driver;
  while (UserCall* call = user_calls.pop_front()) {
    let_poll();
    Shield::lower(unlock());
    base::resume_calls();
    call->run(call);
    base::pass_calls();
    enter_again(mine);
    call->finished(call);
  }
  return true;
}

}  // namespace headway::progress
