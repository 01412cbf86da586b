// Arrived: an unexpected message: one that no receive waited for. Thread: holder of the engine.
// Owner: the engine's pool, until a receive takes it. Invariant: `data` holds `have` of `size`
// bytes of an eager message, or of one that is fetched before its receive; a message that is asked
// for by handshake holds none.
#pragma once
#include <cstdint>

#include "matching/matcher.h"
#include "protocols/request.h"
#include "protocols/wire.h"
#include "transports/shm/ring.h"

namespace headway::protocols {

class Fetches;
struct Peer;
struct Store;

struct Arrived : matching::Message {
  uint32_t pool_index = 0;
  uint32_t generation = 0;
  Arrived* list_next = nullptr;
  bool taken = false;

  bool synchronous = false;
  bool handshake = false;
  Fetches* fetched = nullptr;  // whoever asked for it before its receive (fetch_unexpected.cc)
  Peer* peer = nullptr;
  uint64_t size = 0;
  uint64_t have = 0;
  uint32_t remote = 0;           // id of the send
  RequestSend asked{};           // of a handshake
  Store* store = nullptr;        // what of it came before its send
  Request* own_send = nullptr;   // sent by this process to itself, still in its buffer
  Request* claimed = nullptr;    // receive that waits for the rest of the bytes
  void* communicator = nullptr;  // of the matched probe that took it, which goes with its handle
  char* data = nullptr;          // in_place, or from the heap
  char in_place[shm::inline_max];
};

}  // namespace headway::protocols
