// Unexpected messages that are fetched: a long one that comes over a slow link before its receive
// is asked for all the same, into memory of the library, while the program computes. Its receive
// finds it there, or waits for the rest, as for an eager message that has begun to come. What it
// takes is bounded: beyond the bounds a message stays with its sender, as without this.
// A synchronous send is left alone: its end tells that its receive has begun.
#include "base/check.h"
#include "base/heap.h"
#include "protocols/messages/messages.h"
#include "protocols/prefetch/fetch.h"
#include "protocols/ways/rate.h"

namespace headway::protocols {
namespace {

enum Wish : uint64_t { automatic, always, off };  // PREFETCH_UNEXPECTED

}  // namespace

bool Fetches::may_fetch(const Arrived& message) const {
  const uint64_t size = message.asked.size, wish = messages_.settings().prefetch_unexpected;
  if (!messages_.settings().prefetch || !messages_.settings().progress || wish == off) return false;
  if (!message.peer->can(transports::in_place) || message.synchronous ||
      messages_.unexpected().presses())
    return false;
  if (size == 0 || !(wish == always || is_slow(*message.peer, size))) return false;
  const uint64_t most = messages_.settings().prefetch_max;
  return messages_.unexpected().has_room(size) && stored_bytes_ <= most &&
         size <= most - stored_bytes_;
}

void Fetches::fetch(Arrived* message) {
  if (!may_fetch(*message)) return;
  const uint64_t size = message->asked.size;
  auto* data = static_cast<char*>(base::heap_allocate(size));
  Request* fetch = data ? messages_.requests().take() : nullptr;
  if (!fetch) {
    base::heap_free(data, size);
    return;
  }
  message->data = data;
  message->handshake = false;
  message->fetched = this;
  messages_.unexpected().add_bytes(size);
  stored_bytes_ += size;
  ++messages_.counters().fetched;

  fetch->kind = RequestKind::receive;
  fetch->memory = UserMemory(data, size);
  fetch->owner = message;
  fetch->notify = [](Request* done) {
    static_cast<Arrived*>(done->owner)->fetched->end_fetch(done);
  };
  messages_.begin_receive(fetch);
  messages_.requests().transfers.begin(*fetch).stays = true;
  Peer& peer = *message->peer;
  messages_.fill_in(fetch, message->key, size, peer);
  const uint32_t send = message->remote;
  message->remote = message->asked.origin;
  Store* store = message->store;
  message->store = nullptr;
  messages_.answer_request(fetch, peer, message->asked, send, false, store);
}

void Fetches::note_given(const Arrived& message) {
  if (message.fetched) {
    HEADWAY_CHECK(stored_bytes_ >= message.size);
    stored_bytes_ -= message.size;
  }
  if (message.store) drop_store(message.store);
}

void Fetches::end_fetch(Request* fetch) {
  auto* message = static_cast<Arrived*>(fetch->owner);
  messages_.give_request(fetch);
  message->have = message->size;
  if (Request* receive = message->claimed) messages_.finish_eager(receive, message);
}

}  // namespace headway::protocols
