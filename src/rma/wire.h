// Wire: what the frames of one-sided communication mean. All of them come whole. In a header, word
// is the window's number at the receiver (Windows), or the request's of an answer; source is the
// sender's rank in the window. A body begins with a Head and its runs, where it says so.
#pragma once
#include <cstdint>

#include "base/frame.h"

namespace headway::rma {

// protocols/frames.h has given this room the kinds from 32 on.
enum class Kind : uint8_t {
  put = 32,    // body: Head, runs, their bytes
  get,         // body: Head, runs; wants an answer
  accumulate,  // tag: operation and element (Work); body: Head, runs, the operands, if the
               // operation has any; flag_answer: wants an answer
  swap,        // the same for compare and swap: one run of one element, what is expected, what is
               // to be there then; wants an answer
  answer,      // word: id of the request; context: offset in what it brings; body: the bytes.
               // flag_refused: there are none, for that memory is not in the window; sequence: how
               // many were asked for
  flush,       // context: operations without an answer that were sent before
  flushed,     // to flush and unlock; context: operations carried out; flag_refused: and of those
               // some were not in the window
  lock,        // flag_exclusive
  locked,
  unlock,    // flag_answer: as flush, too
  post,      // the sender exposes its memory to the receiver
  complete,  // the sender accesses the receiver's memory no more
  look       // the sender has given back the receiver's lock word, and somebody waits for it
};

enum Flag : uint8_t { flag_exclusive = 1, flag_refused = 2, flag_answer = 4 };

// Bytes of a body, at most: what every transport brings whole.
inline constexpr uint32_t most_body = 4096;

struct Head {
  uint32_t request;  // at the origin, for the answer, if one is wanted
  uint32_t runs;     // that follow
  uint64_t offset;   // of the answer's bytes in what the request brings
};
static_assert(sizeof(Head) == 16);

// Elements that lie side by side in the target's memory.
struct Run {
  int64_t at;      // from the window's beginning on; in a dynamic one, the address
  uint64_t bytes;  // as in a message: gaps within an element do not count
};
static_assert(sizeof(Run) == 16);

inline constexpr uint32_t most_runs = (most_body - sizeof(Head)) / sizeof(Run);

}  // namespace headway::rma
