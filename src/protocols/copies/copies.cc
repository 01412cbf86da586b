#include "protocols/copies/copies.h"

#include "base/check.h"
#include "base/heap.h"
#include "protocols/ways/rate.h"

namespace headway::protocols {

// Only standard sends: a synchronous one tells that its receive has begun.
bool Copies::fits_aside(const Request& send) const {
  return send.mode == Mode::standard && send.peer->transport &&
         send.memory.bytes() <= most_ - aside_bytes_;
}

char* Copies::make_copy(const Request& send) {
  const uint64_t bytes = send.memory.bytes();
  auto* copy = static_cast<char*>(base::heap_allocate(bytes));
  if (!copy) return nullptr;
  send.memory.read(0, copy, bytes);
  aside_bytes_ += bytes;
  HEADWAY_CHECK(aside_bytes_ <= most_);
  return copy;
}

void Copies::drop_copy(char* copy, uint64_t bytes) {
  aside_bytes_ -= bytes;
  base::heap_free(copy, bytes);
}

// From here on the user's memory is not read again.
void Copies::leave_aside(Request* send, char* copy) {
  rows_.of(*send).own = send->memory;
  send->home = send->memory.flat();
  send->memory = UserMemory(copy, send->memory.bytes());
  send->set(Mark::redirected);
  send->serial = ++sent_aside_;
  send->blocking = false;
}

bool Copies::copy_aside(Request* send) {
  if (!is_slow(*send->peer, send->memory.bytes()) || !fits_aside(*send)) return false;
  char* copy = make_copy(*send);
  if (!copy) return false;
  leave_aside(send, copy);
  send->held_by_user = false;
  return true;
}

bool Copies::may_move_aside(const Request& send) const {
  const bool waits = send.stage() == Stage::requested || send.stage() == Stage::held;
  if (!waits || send.cancelling || !fits_aside(send)) return false;
  if (send.stage() == Stage::held || !send.peer->can(transports::copies) ||
      !send.memory.is_flat()) {
    return true;
  }
  // Else the receiver may read the user's memory at any time.
  const Row* row = rows_.find(send);
  return row && row->slot && send.peer->out.movers().is_open(row->slot - 1);
}

bool Copies::move_aside(Request* send) {
  if (!may_move_aside(*send)) return false;
  char* copy = make_copy(*send);
  if (!copy) return false;
  const Row* row = rows_.find(*send);
  if (row && row->slot &&
      !send->peer->out.movers().move(row->slot - 1, reinterpret_cast<uint64_t>(copy))) {
    drop_copy(copy, send->memory.bytes());  // it begins to take it
    return false;
  }
  leave_aside(send, copy);
  send->done.store(Done::released, std::memory_order_release);
  return true;
}

void Copies::may_move(Request* send, RequestSend& body) {
  for (uint32_t slot = send->blocking ? 0 : 1; slot < shm::mover_slots; ++slot) {
    Request*& holder = send->peer->direct.movers[slot];
    if (holder) continue;
    holder = send;
    rows_.of(*send).slot = slot + 1;
    body.slot = slot;
    body.generation = send->peer->out.movers().open(slot);
    return;
  }
}

void Copies::moves_no_more(Request* send) {
  Row* row = rows_.find(*send);
  if (!row || !row->slot) return;
  HEADWAY_CHECK(send->peer->direct.movers[row->slot - 1] == send);
  send->peer->direct.movers[row->slot - 1] = nullptr;
  row->slot = 0;
}

void Copies::end_copy(Request* send) {
  moves_no_more(send);
  if (!send->is_redirected()) return;
  drop_copy(send->memory.flat(), send->memory.bytes());
  send->memory = rows_[*send].own;
  send->clear(Mark::redirected);
}

}  // namespace headway::protocols
