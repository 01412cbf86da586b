// The message thread's side of the handoff.
#include <cerrno>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "progress/handoff.h"
#include "settings/events.h"

namespace headway::progress {
namespace {

constexpr uint64_t thread_holds_ns = 200'000;  // the message thread owns the engine no longer
constexpr uint64_t apart_ns = 20'000;          // two helps that are less are told as one

}  // namespace

void* Handoff::thread_main(void* self) {
  pthread_setname_np(pthread_self(), "headway");
  auto* const handoff = static_cast<Handoff*>(self);
  handoff->run_thread();
  handoff->tell_help();
  return nullptr;
}

void Handoff::run_thread() {
  message_thread_.store(__builtin_thread_pointer(), std::memory_order_relaxed);
  thread_id_.store(gettid(), std::memory_order_relaxed);
  base::note_message_thread();
  work_->thread_begins();
  while (!stop_.load(std::memory_order_acquire)) {
    epoll_event event;
    const int count = epoll_wait(outer_, &event, 1, -1);
    if (count < 0 && errno != EINTR) return;
    if (count <= 0 || stop_.load(std::memory_order_acquire)) continue;
    if (event.data.u64 == source_patrol) {
      look_after();
      continue;
    }
    if (serve_watched(event.data.u64)) {
      if (event.data.u64 != source_faults || !work_->is_awaited()) continue;
      // What the toucher waits for may lie in a socket already, below the mark that it was to
      // reach.
    }
    ++counters.thread_wakes;
    settings::tell<settings::EventKind::thread_woken>(event.data.u64 == source_faults);
    work_as_thread();
  }
}

// What is watched beside the inner epoll, and seen to without the engine. False: it is none of
// that.
bool Handoff::serve_watched(uint64_t source) {
  if (source == source_deaths) {
    notice_death_();
  } else if (source == source_hosts) {
    work_->hosts();
  } else if (source == source_faults) {
    work_->faults();
  } else {
    return false;
  }
  return true;
}

// While data keep coming this thread is not in its epoll, and nobody else sees any of that. True:
// the one shot was among it, which somebody who has left meanwhile relies on.
bool Handoff::glance_at_watched() {
  constexpr int most = 5;  // all that the outer epoll has: these three, the patrol, the inner one
  epoll_event events[most];
  const int count = epoll_wait(outer_, events, most, 0);
  bool shot = false;
  for (int i = 0; i < count; ++i) {
    const uint64_t source = events[i].data.u64;
    shot |= !serve_watched(source) && source != source_patrol;  // whose timer goes on telling
  }
  return shot;
}

// False: somebody owns it. All signals are blocked here anyway.
bool Handoff::take_as_thread() {
  const uint32_t state = lock_.state();
  return state != EngineLock::held && lock_.try_lock_from(state);
}

// Who sleeps in MPI may be in a handler of the program, which came between and waits for a closed
// page: it works for nobody until that is open.
bool Handoff::sleeper_may_be_held_up() { return shield_.has_handlers() && work_->is_awaited(); }

void Handoff::work_as_thread() {
  // The bell is drained by who owns the engine alone: a ring may be meant for an owner that is
  // about to sleep, and has looked already.
  if (!take_as_thread()) {
    kick_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with arm_and_unlock
    if (!take_as_thread()) {
      ++counters.thread_busy;
      return;  // the owner sees the kick when it leaves
    }
  }
  kick_.store(0, std::memory_order_relaxed);
  sockets_armed_ = false;
  work_as_owner();
}

// It has moved something since then.
void Handoff::note_help(const base::EventBegin& began, uint64_t began_ns) {
  if (help_.began && began_ns - help_.ended_ns >= apart_ns) tell_help();
  if (!help_.began) help_.began = began;
  help_.ended = base::begin_event();
  help_.ended_ns = base::now_ns();
}

void Handoff::tell_help() {
  base::end_event(help_.began, help_.ended, {.kind = headway_event_help});
  help_ = {};
}

// The message thread owns the engine, and gives it back.
void Handoff::work_as_owner() {
  take_reminder();
  if (sleepers_ && !sleeper_may_be_held_up()) {
    // An application thread sleeps on the same descriptors: what came is its own.
    called_ = true;
    let_go();
    return;
  }
  if (is_armed_) disarm();
  drain();
  driver = Driver::thread;
  bool useful = false;
  const base::EventBegin began = base::begin_event();
  const uint64_t began_ns = began ? base::now_ns() : 0;
  do {
    const uint64_t start = base::now_ns();
    bool moved = true;
    while (moved && base::now_ns() - start < thread_holds_ns) {
      moved = work_->advance();
      useful |= moved;
    }
    if (!moved) break;
    let_poll();
    unlock();
    const bool shot = glance_at_watched();
    sched_yield();
    enter_again(Driver::thread);
    if (shot) sockets_armed_ = false;
  } while (!sleepers_ || sleeper_may_be_held_up());
  counters.thread_useful += useful;
  if (useful && began) [[unlikely]]
    note_help(began, began_ns);
  driver = Driver::nobody;
  let_poll();
  if (sleepers_) {
    // It went to sleep between two rounds of ours, armed for everything, and works for all. To arm
    // for our own needs would make it deaf to small messages.
    work_->hand_on();
    called_ = true;
    if (sleeper_may_be_held_up()) {
      watch_sockets();
      set_sockets_armed(true);
    }
    let_go();
    return;
  }
  if (pending == passive) {
    rest();
    return;
  }
  work_->hand_on();  // a copy that another rank helps with is perhaps not through
  while (!arm_and_unlock()) {
    driver = Driver::nobody;
  }
}

}  // namespace headway::progress
