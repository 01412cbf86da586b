// Unexpected messages that are fetched: a long one that comes over a slow link before its receive
// is asked for all the same, into memory of the library, while the program computes. Its receive
// finds it there, or waits for the rest, as for an eager message that has begun to come. What it
// takes is bounded: beyond the bounds a message stays with its sender, as without this.
// A synchronous send is left alone: its end tells that its receive has begun.
#include "base/heap.h"
#include "protocols/engine.h"
#include "protocols/ways/rate.h"

namespace headway::protocols {
namespace {

enum Wish : uint64_t { automatic, always, off };  // PREFETCH_UNEXPECTED

}  // namespace

bool Engine::may_fetch(const Arrived& message) const {
  const uint64_t size = message.asked.size, wish = settings_.prefetch_unexpected;
  if (!settings_.prefetch || !settings_.progress || wish == off) return false;
  if (!message.peer->can(transports::in_place) || message.synchronous || pressure_) return false;
  if (size == 0 || !(wish == always || is_slow(*message.peer, size))) return false;
  const uint64_t unexpected = settings_.unexpected_max, most = settings_.prefetch_max;
  return unexpected_bytes_ <= unexpected && size <= unexpected - unexpected_bytes_ &&
         stored_bytes_ <= most && size <= most - stored_bytes_;
}

// Of a handshake that nobody waits for. What had come of it before its send goes with it.
void Engine::fetch(Arrived* message) {
  if (!may_fetch(*message)) return;
  const uint64_t size = message->asked.size;
  auto* data = static_cast<char*>(base::heap_allocate(size));
  Request* fetch = data ? requests_.take() : nullptr;
  if (!fetch) {
    base::heap_free(data, size);
    return;
  }
  message->data = data;
  message->handshake = false;
  message->fetched = true;
  unexpected_bytes_ += size;
  counters.unexpected_bytes_most.raise_to(unexpected_bytes_);
  stored_bytes_ += size;
  ++counters.fetched;

  fetch->kind = RequestKind::receive;
  fetch->memory = UserMemory(data, size);
  fetch->owner = this;
  fetch->extra = message;
  fetch->notify = [](Request* done) { static_cast<Engine*>(done->owner)->end_fetch(done); };
  begin_receive(fetch);
  fetch->stays = true;
  Peer& peer = *message->peer;
  describe(fetch, message->key, size, peer);
  const uint32_t send = message->remote;
  message->remote = message->asked.origin;
  Store* store = message->store;
  message->store = nullptr;
  answer_request(fetch, peer, message->asked, send, false, store);
}

void Engine::end_fetch(Request* fetch) {
  auto* message = static_cast<Arrived*>(fetch->extra);
  give_request(fetch);
  message->have = message->size;
  if (Request* receive = message->claimed) finish_eager(receive, message);
}

}  // namespace headway::protocols
