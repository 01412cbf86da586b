// Copies: sends that return early. One that is waited for copies its message aside and leaves the
// rest to the message thread: at once if its link is slow, or when its receiver lets it wait. The
// program goes on where it would have watched the wire, or the other rank compute. Thread: holder
// of the engine. Owner: the engine. Invariant: copies take at most HEADWAY_SEND_AHEAD bytes.
#pragma once
#include <cstdint>

#include "base/counter.h"
#include "protocols/beside.h"
#include "protocols/peer.h"
#include "protocols/request.h"
#include "protocols/wire.h"

namespace headway::protocols {

class Copies {
 public:
  explicit Copies(base::Pool<Request>& requests) : rows_(requests) {}
  // `most`: bytes that copies may take at a time (HEADWAY_SEND_AHEAD); 0: none are made.
  void prepare(uint64_t most) { most_ = most; }

  // Before start_send() of a blocking send: copies its message if the link is so slow that this
  // pays. True: the send is nobody's from now on, and its user goes on after
  // start_send().
  bool copy_aside(Request* send);
  // The same for one that has been started. True: its user goes on.
  bool move_aside(Request* send);
  // It waits for its receiver, or for room, and nobody reads it at this moment.
  bool may_move_aside(const Request& send) const;
  bool may_send_ahead() const { return most_ != 0; }
  // Of the copies that there are.
  uint64_t aside_bytes() const { return aside_bytes_; }
  // Blocking sends whose message was copied, so that they returned.
  const base::Counter& sent_aside() const { return sent_aside_; }
  // A send of this host is announced: so that it can be moved, if there is a slot. One is left to
  // blocking sends.
  void may_move(Request* send, RequestSend& body);
  // It could not be announced, or is over.
  void moves_no_more(Request* send);
  // It is complete: its copy, if it has one, is let go.
  void end_copy(Request* send);

 private:
  // Beside a send.
  struct Row {
    UserMemory own;     // of one whose message is copied: its user's
    uint32_t slot = 0;  // 1 + its place among the messages that may move; 0: none
  };

  bool fits_aside(const Request& send) const;
  char* make_copy(const Request& send);
  void drop_copy(char* copy, uint64_t bytes);
  void leave_aside(Request* send, char* copy);

  Beside<Row, Mark::copies> rows_;
  uint64_t most_ = 0;
  base::Counter aside_bytes_, sent_aside_;
};

}  // namespace headway::protocols
