// Wire: what the frames between engines mean. One place for the kinds and their bodies, shared
// memory and TCP alike. Ids are a request's pool index and the low bits of its generation, so that
// a late frame never lands in a request's next life.
#pragma once
#include <cstdint>

#include "base/frame.h"
#include "matching/hook.h"

namespace headway::protocols {

enum class Kind : uint8_t {
  none,
  eager,         // envelope; body: the message. word: id to acknowledge, if flag_synchronous; else,
                 // over TCP, the buffer that it comes from, if that may be asked for (Origins)
  request_send,  // envelope; word: id of the send; body: RequestSend; if some of it came before,
                 // Confirmed and its bits
  clear_send,    // word: id of the send; source: how many send to its receiver, over links; body:
                 // ClearSend; flag_yes: its edges, and wait for a grant
  data,          // word: id of the receive; context: offset; body: bytes of the message
  finished,      // word: id; flag_to_receive: a pushed message is complete, else a pulled one;
                 // context: size of the message, if its receive was claimed
  acknowledge,   // word: id of a synchronous eager send that was matched
  cancel,        // word: id of a send that its user takes back; context: its envelope's context
  cancel_answer,  // word: id of the send; flag_yes: it was still unexpected and is gone
  pressure,       // flag_yes: unexpected messages fill the sender's memory; handshakes, please
  demand,    // word: id of a send that streams; context: offset of a page that is awaited, which
             // is to go next; flag_yes: then those before it
  grant,     // word: id of a send that streams, all but its edges withheld: the rest, too; source:
             // as of clear_send
  prefetch,  // word: an origin; context: its size; its next message is awaited; flag_yes: no more
  refuse,    // word: an origin that was asked for, in vain; flag_yes: and will never be given
  presend,   // word: an origin that was asked for; context: offset; source: bytes before its first
             // page boundary; body: bytes of the next message from there, as they are by now
  confirm,   // envelope; word: an origin; body: ConfirmWhole; the message is what came before. The
             // last of that may have left after its send, when little was missing: the request
             // made room for it, so nobody has to agree to it
  pull,      // word: id of a receive whose sender was to push; context: bytes that are there; both
             // ranks wait, and each copies what it receives
  last
};

enum Flag : uint8_t {
  flag_synchronous = 1,  // envelopes: the send ends when its receive has begun
  flag_to_receive = 2,
  flag_yes = 4,
  flag_waiting = 8,  // request_send: its rank waits in MPI from now on
  flag_asked = 16,   // envelopes: the request for their origin is over
};

struct RequestSend {
  uint64_t size;        // bytes of the message
  uint64_t address;     // where it lies, if it may be pulled, else 0
  uint32_t generation;  // of a slot of shm::Movers, if the message may move; else 0
  uint32_t slot;
  uint32_t origin;  // over TCP: the buffer that it comes from, if that may be asked for
  uint32_t unused;
};
static_assert(sizeof(RequestSend) == 32);

// Of a message, some of which came before its send: the pages of that which are as they were. Pages
// are the sender's: the first one is short, unless the message begins at a boundary. Words of 64
// bits follow, one bit for each `grain` pages.
struct Confirmed {
  uint32_t first;  // bytes before the first boundary
  uint32_t grain;  // by the number of pages: grain_of(); 0: nothing is confirmed
  int64_t shift;   // bytes by which the message begins later in memory than the one asked for
};
static_assert(sizeof(Confirmed) == 16);

inline constexpr uint32_t most_confirmed_words = 256;
inline uint32_t grain_of(uint64_t pages) {
  constexpr uint64_t most_bits = most_confirmed_words * 64;
  return uint32_t((pages + most_bits - 1) / most_bits);
}
inline uint64_t confirmed_bits(uint64_t pages) {
  const uint64_t grain = grain_of(pages);
  return (pages + grain - 1) / grain;
}

struct ConfirmWhole {
  uint64_t size;   // of the message
  uint64_t early;  // bytes of it that came before its send
};
static_assert(sizeof(ConfirmWhole) == 16);

// How the receiver wants the message.
enum class Way : uint32_t { stream, push };

struct ClearSend {
  uint64_t start;    // first byte wanted (a pull that failed half-way goes on as a stream)
  uint64_t length;   // end of what is wanted: less than the message's size if it was truncated
  uint64_t address;  // of the receiver's buffer if it may be written, else 0
  uint32_t receive;  // id
  Way way;
  // A stream brings these first: the bytes before the receiver's first page boundary, and those
  // behind its last one. The pages that hold them hold other data of its program, too.
  uint32_t head, tail;
};
static_assert(sizeof(ClearSend) == 40);

// Of an envelope.
inline matching::Key key_of(const FrameHeader& header) {
  return {header.context, header.source, header.tag};
}
inline matching::Traffic traffic_of(const FrameHeader& header) {
  return {header.collective, header.shape};
}
// The buffer that an eager message comes from; 0: that is not told.
inline uint32_t origin_told(const FrameHeader& header) {
  return header.flags & flag_synchronous ? 0 : header.word;
}

inline constexpr uint32_t id_index_bits = 22;
constexpr uint32_t wire_id(uint32_t index, uint32_t generation) {
  return generation << id_index_bits | index;
}

}  // namespace headway::protocols
