// Request: one operation in flight: a send, a receive, a schedule. Thread: holder of the engine;
// only `done` is read without it. Owner: the engine's pool; it lives while its user holds a handle
// or the engine works on it. Invariant: when `done` is `whole` the engine does not touch it again,
// and from `released` on it leaves alone what a status is made of.
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
struct Confirm;
}  // namespace headway::protocols

namespace headway::guard {
struct Region;
}

namespace headway::protocols {

enum class RequestKind : uint8_t { send, receive, schedule, generalized, null };
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
    case pushing: return among({streaming});
    case posted: return among({landing, pulling});
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
  // `memory` is not the user's: closed pages' view, or a copy of what is sent. `home` is.
  redirected = 2
};

struct Request : matching::Hook {
  bool has(Mark mark) const { return marks & uint8_t(mark); }
  void set(Mark mark) { marks |= uint8_t(mark); }
  void clear(Mark mark) { marks &= uint8_t(~uint8_t(mark)); }
  bool is_redirected() const { return has(Mark::redirected); }

  // pool
  uint32_t pool_index = 0;
  uint32_t generation = 0;

  RequestKind kind = RequestKind::null;
  Mode mode = Mode::standard;
  Outcome outcome = Outcome::ok;
  std::atomic<uint8_t> done{0};  // a Done

 private:
  friend class Engine;  // set_stage() counts how many are in each
  friend class TestStages;
  Stage stage_ = Stage::idle;

 public:
  Stage stage() const { return stage_; }

  // Bits that others write lie in other bytes: its user looks at these without the engine.
  bool taken : 1 = false;  // out of the pool
  bool : 0;
  bool held_by_user : 1 = false;  // a handle exists
  bool persistent : 1 = false;
  bool started : 1 = false;  // persistent: between start and completion seen by the user
  bool : 0;
  bool cancelled : 1 = false;
  bool : 0;
  // These are the engine's alone.
  bool cancelling : 1 = false;
  bool blocking : 1 = false;  // send: its rank waits for it and for nothing else
  bool passive : 1 = false;   // send: all that is left to come is an acknowledgement
  bool helpable : 1 =
      false;                 // stands in the list of those whose copy the other rank may have begun
  bool shared : 1 = false;   // pulling, pushing: shared out between both ranks
  bool drained : 1 = false;  // shared: all is taken, the helper may still copy
  bool told : 1 = false;     // receive: who dozes has been told that it may be released
  bool fresh : 1 = false;    // pulling alone: its user has not been asked yet whether it goes on
  bool claimed : 1 = false;  // receive: its sender took it by the advert
  bool in_runs : 1 = false;  // receive: of a type made of few large runs, which can be closed
  bool unseen : 1 = false;   // receive: its user was released before it was matched
  bool awaited : 1 = false;  // receive: its user waits for it in MPI

  uint8_t marks = 0;  // of Mark
  uint8_t mover = 0;  // send: 1 + its slot among the messages that may move
  // Receive: whether a release is worth it; asked once for each message.
  enum class Worth : uint8_t { unasked, yes, no } worth = Worth::unasked;
  uint32_t wait = 0;  // the last call that wanted to go on without it (Release::begin_call)

  Request* list_next = nullptr;  // held, streaming, pulling and pushing lists; free ones
  Request* list_prev = nullptr;

  Peer* peer = nullptr;  // receive: null for any source until matched
  UserMemory memory;
  // A receive whose pages are closed: what is still to come goes through this, and `memory` is the
  // region's view.
  guard::Region* region = nullptr;
  int64_t region_start = 0;  // offset of its first byte in the message
  char* home = nullptr;      // the user's buffer
  // The user's buffer, also of a send that was copied aside.
  char* buffer() const { return is_redirected() ? home : memory.base(); }
  uintptr_t site = 0;     // where its user waits for it, as far as is known
  uint32_t profit = 0;    // what is learned by it (Profit)
  uint64_t mixed_at = 0;  // receive: others worked in its pages when the engine counted so much
  uint64_t noted = 0;     // bytes that have been put into the view
  uint32_t origin = 0;    // send: the buffer that it comes from (Origins); 0: none
  Confirm* confirm = nullptr;  // send: what of it came before, if it was asked for
  uint64_t serial = 0;         // aside, receive: its number among all of these
  uint64_t away_since = 0;     // pulling, pushing: since when the other rank is seen outside MPI

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

// By which a transport names a send (Transport::push).
inline uint64_t cookie_of(const Request& request) {
  return uint64_t(request.generation) << 32 | request.pool_index;
}

// By which the other side names it.
inline uint32_t id_of(const Request* request) {
  return wire_id(request->pool_index, request->generation);
}

}  // namespace headway::protocols
