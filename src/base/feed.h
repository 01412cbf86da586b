// Feed and Landing: how a transport reaches user memory without knowing it. A Feed hands out the
// bytes of one frame's body, a Landing takes them, and a Lander is told of them. Thread: holder of
// the engine. Owner: the request behind it; the memory stays valid until the frame is sent or
// landed. Invariant: offsets count bytes of the packed message, never addresses.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/frame.h"

namespace headway {

struct Feed {
  const char* flat = nullptr;  // first byte of the body if it is contiguous, else null
  void (*pack)(const void* memory, uint64_t offset, void* out, size_t n) = nullptr;
  const void* memory = nullptr;
  uint64_t offset = 0;  // where the body starts in the packed message (for pack)
  uint64_t length = 0;  // bytes of the body

  // Copies bytes [from, from + n) of the body to `out`.
  void copy(uint64_t from, void* out, size_t n) const {
    HEADWAY_CHECK(from + n <= length);
    if (flat) {
      memcpy(out, flat + from, n);
    } else if (n) {
      pack(memory, offset + from, out, n);
    }
  }
};

struct Landing;

// Who is told of a body that comes in pieces: one for each kind of place that takes one. `owner`:
// of the frame's kind.
struct Lander {
  // Some bytes of it are in place (arrived = bytes of the body so far); null: nobody asks.
  void (*landed)(void* owner, const FrameHeader& header, const Landing& landing, uint64_t arrived);
  // The body is complete.
  void (*end)(void* owner, uint32_t peer, const FrameHeader& header, const Landing& landing);
};

struct Landing {
  char* flat = nullptr;  // where the body's first byte goes if the place is contiguous, else null
  void (*unpack)(void* memory, uint64_t offset, const void* in, size_t n) = nullptr;
  void* memory = nullptr;
  uint64_t offset = 0;
  uint64_t length = 0;    // bytes that are wanted; bytes of the body beyond it are thrown away
  void* token = nullptr;  // given back to the receiver of the frame when it has landed
  const Lander* lander = nullptr;  // what the token is, and who takes it

  // Stores n bytes as bytes [from, from + n) of the body; what lies beyond `length` is dropped.
  void store(uint64_t from, const void* in, size_t n) const {
    if (from >= length) return;
    if (n > length - from) n = length - from;
    if (flat) {
      memcpy(flat + from, in, n);
    } else {
      unpack(memory, offset + from, in, n);
    }
  }
};

}  // namespace headway
