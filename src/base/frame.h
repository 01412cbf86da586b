// FrameHeader: the 32 bytes in front of every frame, on shared memory rings and TCP alike.
// Transports read only `kind` (whether a body is large data) and `length`; the rest belongs to
// protocols/. All fields are in the byte order of the machine: one job is one architecture.
#pragma once
#include <cstdint>

namespace headway {

struct FrameHeader {
  uint8_t kind = 0;
  uint8_t flags = 0;
  uint8_t collective = 0;  // kind of collective, 0 for point to point
  uint8_t shape = 0;       // of a collective: sizes of its message and its communicator
  uint32_t length = 0;     // bytes of the body that follows in this frame
  int32_t tag = 0;
  int32_t source = 0;    // rank of the sender in the communicator
  uint64_t context = 0;  // or an id, for frames that are not envelopes
  uint32_t sequence = 0;
  uint32_t word = 0;
};
static_assert(sizeof(FrameHeader) == 32);

}  // namespace headway
