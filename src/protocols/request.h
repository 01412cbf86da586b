// Request: one operation in flight: a send, a receive, a schedule. Thread: holder of the engine;
// its user reads `done` and his own bits without it, and then what a status is made of. Owner: the
// engine's pool; it lives while its user holds a handle or the engine works on it. Invariant: when
// `done` is `whole` the engine does not touch it again, and from `released` on it leaves alone what
// a status is made of.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/outcome.h"
#include "matching/matcher.h"
#include "protocols/user_memory.h"
#include "protocols/wire.h"

namespace headway::protocols {

struct Peer;
struct Arrived;

// access: what a one-sided operation brings from its target (rma/). partitioned: a round of
// messages, one for each part (p2p/partitioned.h). file: an access to a file (io/).
enum class RequestKind : uint8_t {
  send,
  receive,
  schedule,
  generalized,
  access,
  partitioned,
  file,
  null
};
enum class Mode : uint8_t { standard, synchronous, buffered, ready };

enum class Stage : uint8_t {
  idle,       // not started, or complete
  posted,     // receive: in the posted queue
  held,       // send: waits for room, in order, at its peer
  leaving,    // send: the transport holds its bytes
  requested,  // send: waits for clear-to-send, an acknowledgement or the end of a pull
  streaming,  // send: its data goes out in chunks
  landing,    // receive: data comes in
  claimed,    // receive: took an unexpected message that is still arriving
  pulling,    // receive: this side copies from the sender's memory
  pushing,    // send: this side copies into the receiver's memory
  running     // schedule, and what is made of several requests
};
inline constexpr size_t stage_count = size_t(Stage::running) + 1;

// How the stages of a request follow each other; every one may be the last before it is complete.
constexpr bool may_follow(Stage now, Stage next) {
  const auto among = [next](std::initializer_list<Stage> stages) {
    for (const Stage stage : stages) {
      if (stage == next) return true;
    }
    return next == Stage::idle;
  };
  using enum Stage;
  switch (now) {
    case idle: return next != idle && next != streaming;
    case held: return among({requested, leaving});
    case leaving: return among({requested, streaming});
    case requested: return among({streaming, pushing});
    case streaming: return among({pushing});
    case pushing: return among({streaming, requested});
    case posted: return among({landing, pulling});
    case landing: return among({pulling});
    case pulling: return among({landing});
    default: return next == idle;
  }
}

// How far a request is for its user, who waits until it is not `no`.
enum Done : uint8_t {
  no,
  whole,    // it is over
  released  // its user goes on: the rest lies in closed pages, and the engine still works on it
};

// Until it is complete: which rows beside a request are its own, and what else is rare. None of
// them: it moves in one frame, and nobody has to know when it is over.
enum class Mark : uint8_t {
  transfer = 1,  // a Transfer
  release = 2,   // what Release keeps
  direct = 4,    // what OneCopy does
  copies = 8,    // and Copies
  presend = 16,  // and Presends
  passive = 64,  // send: all that is left to come is an acknowledgement
  // `memory` is not the user's: closed pages' view, or a copy of what is sent. `home` is.
  redirected = 128
};

struct Request : matching::Hook {
  bool has(Mark mark) const { return marks & uint8_t(mark); }
  void set(Mark mark) { marks |= uint8_t(mark); }
  void clear(Mark mark) { marks &= uint8_t(~uint8_t(mark)); }
  bool is_redirected() const { return has(Mark::redirected); }

  // pool
  uint32_t pool_index = 0;
  uint32_t generation = 0;

  // Bits side by side share a byte, and its user looks at some without the engine: those are apart
  // from the engine's own, which are written while they may be looked at.
  bool taken : 1 = false;  // out of the pool
  RequestKind kind = RequestKind::null;
  bool held_by_user : 1 = false;  // a handle exists
  bool persistent : 1 = false;
  Mode mode = Mode::standard;
  // Persistent: between start and completion seen by the user, who says so without the engine.
  bool started : 1 = false;
  Outcome outcome = Outcome::ok;
  bool cancelled : 1 = false;
  std::atomic<uint8_t> done{0};  // a Done
  bool cancelling : 1 = false;
  bool blocking : 1 = false;  // send: its rank waits for it and for nothing else
  bool awaited : 1 = false;   // receive: its user waits for it in MPI
  bool wanted : 1 = false;    // receive: or has waited for it or any other
  uint8_t marks = 0;          // of Mark

 private:
  friend class Core;  // set_stage() counts how many are in each
  friend class TestStages;
  Stage stage_ = Stage::idle;

 public:
  Stage stage() const { return stage_; }

  Request* list_next = nullptr;  // held, streaming, pulling and pushing lists; free ones
  Request* list_prev = nullptr;

  Peer* peer = nullptr;  // receive: null for any source until matched
  UserMemory memory;
  char* home = nullptr;  // of one that is redirected: its user's buffer
  // Its user's buffer.
  char* buffer() const { return is_redirected() ? home : memory.base(); }
  uint64_t serial = 0;  // receive, copied send: its number among all of these

  // what the user's status gets
  int32_t status_source = 0;
  int32_t status_tag = 0;
  uint64_t sent_bytes = 0;  // receive: the message's size, also if truncated
  // Receive, matched: bytes that are put into its buffer.
  uint64_t status_bytes() const {
    return sent_bytes < memory.bytes() ? sent_bytes : memory.bytes();
  }

  // called once when the request completes, with the engine held (steps of schedules)
  void (*notify)(Request*) = nullptr;
  void* owner = nullptr;  // theirs

  // of higher rooms: what goes with the request is let go when it goes back to the pool
  void* communicator = nullptr;
  void (*on_give)(Request*) = nullptr;
};
static_assert(sizeof(Request) <= 192, "what only some need has a place beside it (Beside)");

// By which a transport names a send (Transport::push).
inline uint64_t cookie_of(const Request& request) {
  return uint64_t(request.generation) << 32 | request.pool_index;
}

// By which the other side names it.
inline uint32_t id_of(const Request* request) {
  return wire_id(request->pool_index, request->generation);
}

}  // namespace headway::protocols
