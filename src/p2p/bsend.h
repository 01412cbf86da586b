// Buffered sends: messages copied into a buffer that the user attached, or one that the library
// makes by itself. Thread: any application thread; the functions take the engine. Owner: the
// process's buffer lives here, that of a communicator or session in it. Invariant: a block is in
// use until its send is complete; the user's memory holds messages only, our notes lie elsewhere.
#pragma once
#include "p2p/p2p.h"

namespace headway::p2p {

struct SendBuffer;

// bad_argument: no buffer, or no room in it.
Outcome send_buffered(waiting::Waiter& waiter, const UserMemory& memory, const Address& to);
// Starts a persistent buffered send; engine held. On failure the request completes with it.
void restart_buffered(waiting::Waiter& waiter, Request* request);

// Attach, detach and flush the buffer that a communicator or session keeps at `place`, or that of
// the process (null). `memory` null: automatic. bad_argument: attach with one there, detach
// without.
Outcome attach_buffer(waiting::Waiter& waiter, void** place, void* memory, uint64_t size);
Outcome detach_buffer(waiting::Waiter& waiter, void** place, void*& memory, uint64_t& size,
                      bool& automatic);
Outcome flush_buffer(waiting::Waiter& waiter, void** place);
// The same without waiting: a request of the user that is complete when the buffer is empty. Null
// without memory.
Request* start_flush(waiting::Waiter& waiter, void** place);
// At finalize: waits until all have left.
void finish_buffers(waiting::Waiter& waiter);

}  // namespace headway::p2p
