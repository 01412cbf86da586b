// Sends that return early: one that is waited for copies its message aside, and leaves the rest to
// the message thread, at once if its link is slow, or when its receiver lets it wait. The program
// goes on where it would have watched the wire, or the other rank compute. What was copied goes out
// one message after the other, in the order of the sends, as it would have without the copies: side
// by side, the first would come as late as the last.
#include "base/heap.h"
#include "protocols/engine.h"

namespace headway::protocols {
namespace {

// Shorter waits than this do not pay for waking the message thread.
constexpr uint64_t least_wait_us = 150;
// Of a link; a faster one is not ten times slower than the copy.
constexpr uint64_t fastest_rate = 400'000'000;

}  // namespace

// Only standard sends: a synchronous one tells that its receive has begun. A persistent one is sent
// again from where it lay, which is known of data without gaps.
bool Engine::fits_aside(const Request& send) const {
  return send.mode == Mode::standard && send.peer->transport &&
         !(send.persistent && !send.memory.is_flat()) &&
         send.memory.bytes() <= settings_.send_ahead - aside_bytes_;
}

char* Engine::make_copy(const Request& send) {
  const uint64_t bytes = send.memory.bytes();
  auto* copy = static_cast<char*>(base::heap_allocate(bytes));
  if (!copy) return nullptr;
  send.memory.read(0, copy, bytes);
  aside_bytes_ += bytes;
  return copy;
}

void Engine::drop_copy(char* copy, uint64_t bytes) {
  aside_bytes_ -= bytes;
  base::heap_free(copy, bytes);
}

// From here on the user's memory is not read again.
void Engine::leave_aside(Request* send, char* copy) {
  send->home = send->memory.flat();
  send->memory = UserMemory(copy, send->memory.bytes());
  send->aside = true;
  send->serial = ++counters.sent_aside;
  send->blocking = false;
}

bool Engine::is_slow(const Peer& peer, uint64_t bytes) const {
  if (peer.on_this_host()) return false;
  const uint64_t rate = peer.transport->rate(peer.number);
  return rate != 0 && rate <= fastest_rate && bytes * 1'000'000 / rate >= least_wait_us;
}

bool Engine::copy_aside(Request* send) {
  if (!is_slow(*send->peer, send->memory.bytes()) || !fits_aside(*send)) return false;
  char* copy = make_copy(*send);
  if (!copy) return false;
  leave_aside(send, copy);
  send->held_by_user = false;
  return true;
}

bool Engine::may_move_aside(const Request& send) const {
  const bool waits = send.stage() == Stage::requested || send.stage() == Stage::held;
  if (!waits || send.cancelling || !fits_aside(send)) return false;
  if (send.stage() == Stage::held || !send.peer->can(transports::copies) ||
      !send.memory.is_flat()) {
    return true;
  }
  // Else the receiver may read the user's memory at any time.
  return send.mover && send.peer->out.movers().is_open(send.mover - 1u);
}

bool Engine::move_aside(Request* send) {
  if (!may_move_aside(*send)) return false;
  char* copy = make_copy(*send);
  if (!copy) return false;
  if (send->mover &&
      !send->peer->out.movers().move(send->mover - 1u, reinterpret_cast<uint64_t>(copy))) {
    drop_copy(copy, send->memory.bytes());  // it begins to take it
    return false;
  }
  leave_aside(send, copy);
  send->done.store(Done::released, std::memory_order_release);
  return true;
}

// Announces it so that it can be moved, if there is a slot: one is left to blocking sends.
void Engine::may_move(Request* send, RequestSend& body) {
  for (uint32_t slot = send->blocking ? 0 : 1; slot < shm::mover_slots; ++slot) {
    Request*& holder = send->peer->movers[slot];
    if (holder) continue;
    holder = send;
    send->mover = uint8_t(slot + 1);
    body.slot = slot;
    body.generation = send->peer->out.movers().open(slot);
    return;
  }
}

void Engine::moves_no_more(Request* send) {
  if (!send->mover) return;
  send->peer->movers[send->mover - 1] = nullptr;
  send->mover = 0;
}

void Engine::end_aside(Request* send) {
  moves_no_more(send);
  if (!send->aside) return;
  drop_copy(send->memory.flat(), send->memory.bytes());
  send->memory = send->persistent ? UserMemory(send->home, send->memory.bytes()) : UserMemory();
  send->aside = false;
}

// The receiver has asked for it and has its edges. Its turn comes after those that were sent
// before.
void Engine::queue_aside(Request* send) {
  Request* later = asides_cleared_.first();
  while (later && later->serial < send->serial) later = later->list_next;
  if (!later) {
    asides_cleared_.push_back(send);
  } else if (later == asides_cleared_.first()) {
    asides_cleared_.push_front(send);
  } else {
    asides_cleared_.insert_before(later, send);
  }
  if (aside_now_ && aside_now_->serial < send->serial) return;
  if (Request* later_one = aside_now_) {  // it was asked for sooner
    aside_now_ = nullptr;
    later_one->peer->streams.remove(later_one);
    queue_aside(later_one);  // and begins the first one
    return;
  }
  next_aside();
}

void Engine::next_aside() {
  aside_now_ = asides_cleared_.pop_front();
  if (!aside_now_) return;
  aside_now_->peer->streams.push_back(aside_now_);
  mark_busy(*aside_now_->peer);
}

}  // namespace headway::protocols
