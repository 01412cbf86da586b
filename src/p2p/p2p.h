// p2p: point-to-point operations on a communicator. Thread: any application thread; each function
// takes the engine itself, unless it says that it is held. Owns nothing: requests come from the
// engine's pool. Invariant: arguments were checked by api/; ranks are valid in the communicator.
#pragma once
#include <cstdint>

#include "objects/comm.h"
#include "protocols/messages/arrived.h"
#include "protocols/request.h"

namespace headway::protocols {
class Engine;
}
namespace headway::waiting {
class Waiter;
}

namespace headway::p2p {

using protocols::Mode;
using protocols::Request;
using protocols::UserMemory;

// One side of a message: the other rank and the tag, both in the communicator. For receives
// matching::any stands for any source and any tag.
struct Address {
  objects::Comm* comm;
  int rank;
  int tag;
};

// What a receive tells its user.
struct Status {
  int source = 0;
  int tag = 0;
  uint64_t bytes = 0;       // in the buffer
  uint64_t sent_bytes = 0;  // of the message
  bool cancelled = false;
};

// Blocking. The story of a failed operation is in its arguments.
Outcome send(waiting::Waiter& waiter, const UserMemory& memory, const Address& to, Mode mode);
// `unmatched`: the caller may be let go before a message has come; `status` is of no use then.
Outcome receive(waiting::Waiter& waiter, const UserMemory& memory, const Address& from,
                bool unmatched, Status& status);

// Non-blocking: a request that its user holds, or null without memory. A datatype
// with gaps and the communicator are kept as long as the request needs them.
Request* start_send(waiting::Waiter& waiter, const UserMemory& memory, const Address& to,
                    Mode mode);
Request* start_receive(waiting::Waiter& waiter, const UserMemory& memory, const Address& from);
// Complete from the start (PROC_NULL, buffered sends); `status_source` as given.
Request* make_complete(waiting::Waiter& waiter, objects::Comm* comm, int source, int tag);

// With the engine held: request bound to a communicator and an address, not started.
Request* make_send(protocols::Engine& engine, const UserMemory& memory, const Address& to,
                   Mode mode);
Request* make_receive(protocols::Engine& engine, const UserMemory& memory, const Address& from);

// Send and receive at once, complete when both are.
Outcome send_receive(waiting::Waiter& waiter, const UserMemory& out, const Address& to,
                     const UserMemory& in, const Address& from, Status& status);
// The same as one request. `copy`, if not null, holds the bytes that go out and belongs to the
// request (heap, `copy_size` bytes).
Request* start_send_receive(waiting::Waiter& waiter, const UserMemory& out, const Address& to,
                            const UserMemory& in, const Address& from, void* copy,
                            uint64_t copy_size);

// Probes. `wait`: until a message is there. False: none. A matched probe takes it from the queue;
// the message then keeps its communicator, and whoever receives it gets that reference.
bool probe(waiting::Waiter& waiter, const Address& from, bool wait, Status& status);
protocols::Arrived* matched_probe(waiting::Waiter& waiter, const Address& from, bool wait,
                                  Status& status);
// The one with that number and generation, or null.
protocols::Arrived* find_message(waiting::Waiter& waiter, uint32_t number, uint32_t generation);
inline objects::Comm* comm_of(const protocols::Arrived& message) {
  return static_cast<objects::Comm*>(message.communicator);
}
Request* start_matched_receive(waiting::Waiter& waiter, const UserMemory& memory,
                               protocols::Arrived* message);
Outcome matched_receive(waiting::Waiter& waiter, const UserMemory& memory,
                        protocols::Arrived* message, Status& status);

// Persistent requests. start() and its kin take an inactive one; engine held.
Request* make_persistent(waiting::Waiter& waiter, const UserMemory& memory, const Address& address,
                         bool receives, Mode mode);
void restart(waiting::Waiter& waiter, Request* request);

// Fills a status from a complete request.
void read_status(const Request& request, Status& status);

}  // namespace headway::p2p
