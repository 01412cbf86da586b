// How this rank leaves MPI: MPI_Finalize, the last MPI_Session_finalize, the end of the process.
//
// MPI_Finalize is a matter of all ranks: each waits there for all. A session is closed by its rank
// alone. Whoever closes last lets the process rest: what is pending leaves, the peers and the
// launcher are told that this rank may end from now on in any way, also by _exit. The rooms stay,
// because a session may come at any time and finds the other ranks where they were; only then the
// launcher and the peers hear that the rank is back.
#include "rma/windows.h"
#include "runtime/leftovers.h"
#include "runtime/locked.h"
#include "runtime/process.h"
#include "spawn/junction.h"
#include "spawn/talk.h"
#include "waiting/waiter.h"

namespace headway::runtime {
namespace {

// An acknowledgement of the network rings no bell.
constexpr int look_again_ms = 1;

}  // namespace

// Dissemination: after it, every rank is in MPI_Finalize.
void Process::barrier(Leftovers& leftovers) {
  const uint32_t size = uint32_t(bootstrap.size());
  const uint32_t self = uint32_t(rank());
  const uint64_t context = registry.everyone->collective_context();
  for (uint32_t distance = 1; distance < size; distance *= 2) {
    const uint32_t to = (self + distance) % size;
    const uint32_t from = (self + size - distance) % size;
    protocols::Request* send = engine_->take_request();
    protocols::Request* receive = engine_->take_request();
    protocols::Peer* next = engine_->peer(to);
    protocols::Peer* previous = engine_->peer(from);
    if (!send || !receive || !next || !previous) return;
    const int tag = -1000 - int(distance);
    send->kind = protocols::RequestKind::send;
    receive->kind = protocols::RequestKind::receive;
    send->held_by_user = receive->held_by_user = true;
    send->memory = receive->memory = protocols::UserMemory(nullptr, 0);
    send->key = {context, int32_t(self), tag};
    receive->key = {context, int32_t(from), tag};
    send->peer = next;
    receive->peer = previous;
    engine_->start_receive(receive);
    engine_->start_send(send);
    waiter_->until(
        [&] {
          leftovers.look();
          return receive->done.load(std::memory_order_relaxed) != 0;
        },
        receive->peer);
    waiter_->request(send);
    engine_->give_request(send);
    engine_->give_request(receive);
  }
}

// Sends whose requests were freed, and what buffers still hold, must leave first.
void Process::drain(Leftovers& leftovers) {
  leftovers.tell_requests();
  leftovers.tell_windows(rma::windows().count());
  engine_->stop_prefetching();
  waiter_->until(
      [&] {
        leftovers.look();
        return engine_->is_idle() || engine_->only_receives_left();
      },
      nullptr);
}

// While a session is open, in another thread perhaps, nobody can tell what is left over: then the
// world ends alone. No lock while this waits: who opens a session meanwhile need not wait, too.
void Process::close_world() {
  pthread_mutex_lock(&lifecycle_);
  const bool last = sessions_ == 0;
  pthread_mutex_unlock(&lifecycle_);
  Leftovers leftovers(*engine_, registry, "MPI_Finalize", host_, !settings.finalize_check || !last,
                      false);
  engine_->handoff().enter();
  if (last) drain(leftovers);
  barrier(leftovers);
  leftovers.tell_messages();
  engine_->handoff().leave();
  const Locked locked(lifecycle_);
  registry.world = registry.self = nullptr;
  world.store(State::after, std::memory_order_release);
  if (sessions_ == 0) rest();
}

bool Process::is_last_session() {
  const Locked locked(lifecycle_);
  return sessions_ == 1 && world.load(std::memory_order_acquire) != State::running;
}

void Process::close_session() {
  if (is_last_session()) {
    const bool world_may_come = world.load(std::memory_order_acquire) == State::before;
    Leftovers leftovers(*engine_, registry, "MPI_Session_finalize", host_, !settings.finalize_check,
                        world_may_come);
    engine_->handoff().enter();
    drain(leftovers);
    leftovers.tell_messages();
    engine_->handoff().leave();
  }
  const Locked locked(lifecycle_);
  --sessions_;
  if (sessions_ == 0 && world.load(std::memory_order_acquire) != State::running) rest();
}

// The lock is held. What was pending has left before, as a rule.
void Process::rest() {
  engine_->handoff().enter();
  waiter_->until([&] { return engine_->is_idle() || engine_->only_receives_left(); }, nullptr);
  say_goodbye();
  engine_->rest();
  waiter_->until([&] { return engine_->is_delivered(); }, nullptr, look_again_ms);
  tcp_.pause_watch();
  state.store(State::resting, std::memory_order_release);
  engine_->handoff().leave();
  write_counters();
  bootstrap.close();
}

// The lock is held. Every launcher takes us back: who was there once has its place.
void Process::wake() {
  (void)bootstrap.open();
  engine_->handoff().enter();
  take_back_goodbye();
  engine_->wake();
  state.store(State::running, std::memory_order_release);
  engine_->handoff().leave();
  // Pairs with on_fatal, notice_death and on_silent_host.
  if (lost_at_rest_.load(std::memory_order_acquire)) {
    abort(1,
          "another rank was lost while this one was outside of MPI. Likely cause: it has died. "
          "Likely remedy: look for what that rank said last. The job ends.");
  }
}

// The program exits. Who does not rest has not said good-bye, and the launcher shall see it. Who
// exits inside of MPI_Finalize, in a callback perhaps, holds the lock.
// No jump into the last call: ThreadSanitizer tells by the return address that it is the library's
// (tools/wrappers/tsan.supp), and here it would be libc's.
[[gnu::optimize("no-optimize-sibling-calls")]] void Process::at_exit() {
  Process& self = process();
  if (pthread_mutex_trylock(&self.lifecycle_) != 0) return;
  if (self.state.load(std::memory_order_acquire) == State::resting) self.take_down();
  pthread_mutex_unlock(&self.lifecycle_);
}

void Process::take_down() {
  state.store(State::after, std::memory_order_release);
  engine_->handoff().stop();
  tcp_.end_watch();
  engine_->stop_guard();
  deaths_.stop();
  if (network_) tcp_.finish();
  spawn::junctions().finish();
  spawn::ports().close_all();
  engine_->node().detach();
}

}  // namespace headway::runtime
