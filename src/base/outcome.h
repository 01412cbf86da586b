// Outcome: the one byte in which errors travel inside the library. Only api/ turns it into an MPI
// error class; the story (peer, tag, sizes) stays in the Request until then.
#pragma once
#include <cstdint>

namespace headway {

enum class [[nodiscard]] Outcome : uint8_t {
  ok,
  truncated,     // the message is longer than the receive's buffer
  cancelled,     // taken back by the user
  peer_lost,     // the peer's process or its connection is gone
  no_memory,     // mmap or the shared segment refused
  no_route,      // no address of the peer could be reached
  no_resource,   // descriptors, processes
  refused,       // the system forbids it (permissions)
  bad_argument,  // inconsistent arguments that only the engine could see
  bad_data,      // what came in does not fit the protocol
  outside,       // memory that is not in the window
  unsupported,
  file_failed,  // what the system says of a file is with the operation (io/failure.h)
  internal
};

// A full queue is a value, not an error: the caller keeps the frame and its order.
enum class [[nodiscard]] Push : uint8_t {
  done,     // the frame's memory may be reused
  started,  // the transport holds the frame's Feed until it reports that it is sent
  full      // nothing was taken
};

}  // namespace headway
