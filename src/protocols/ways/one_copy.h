// OneCopy: messages between ranks of one node that are copied once, from buffer to buffer: who
// copies, in which pieces, and with whose help. Thread: holder of the engine. Owner: the engine.
// Invariant: each byte is copied by one of the two ranks; nobody copies for a request that is
// complete.
#pragma once
#include <cstdint>

#include "base/list.h"
#include "protocols/beside.h"
#include "protocols/peer.h"
#include "protocols/request.h"
#include "transports/shm/split.h"

namespace headway::protocols {

class Frames;
class Messages;
class Streams;

class OneCopy {
 public:
  OneCopy(Messages& messages, Streams& streams, base::Pool<Request>& requests)
      : messages_(messages), streams_(streams), rows_(requests) {}
  // HEADWAY_ONE_COPY. Off, too, once the system has refused a copy.
  void allow(bool may_pull) { may_pull_ = may_pull; }
  bool may_pull() const { return may_pull_; }
  void add_frames(Frames& frames);

  // --- who copies ---
  // This side may copy straight into the receiver's buffer.
  bool can_push(const Request* request) const;
  void start_push(Request* send);
  // The same of one whose receiver asked for it, and can be asked back.
  void push_as_asked(Request* send);
  // Its sender is asked to push it.
  void expect_push(Request* receive);
  // All of it is in the receiver's buffer: that is told, and it is complete.
  void finish_push(Request* request);
  void start_pull(Request* request);
  // A message whose pages are closed, or will be if its user goes on: copied by this side alone, so
  // that each piece is known when it is there, edges first. Where these are is to be said between
  // the two.
  void begin_alone(Request* receive);
  void copy_edges(Request* receive);
  // Copies between this process and another, by whoever has time: a rank that waits does it while
  // the other side is outside MPI. If both wait they share it, or stream it through the segment:
  // both use two cores. True if anything moved.
  bool copy_some();
  // The other rank does not wait, and not only because it is between two calls.
  bool stays_away(Request* request);
  void came_back(Request* request) {
    if (Row* row = rows_.find(*request)) row->away_since = 0;
  }
  // A message of this rank's own is on its way to the other one, too, which has that to copy, and
  // two streams at a time would be slower.
  bool each_copies_its_own(const Request& receive) const;
  // A page of it is awaited: it is copied before others.
  void hurry(Request* pull) {
    pulls_.remove(pull);
    pulls_.push_front(pull);
  }
  // Those that this side copies, the next one first.
  const base::List<Request>& pulls() const { return pulls_; }

  // --- two ranks, one message ---
  // The other rank may begin to copy this message at any time.
  void expect_help(Request* request);
  void stop_helping(Request* request);
  // A rank that waits copies a piece of a message that the other side has begun to copy, if there
  // may be one. True if it did.
  bool may_help() const { return !helpable_.empty(); }
  bool help_some();

  // --- adverts ---
  // Lets the sender see a receive that no older one can precede. Before it is posted.
  void advertise(Request* receive);
  // One that is out of the queue, to be matched. False: its sender was faster, and it lands.
  bool withdraw(Request* receive);
  // The same for one in the queue, where it stays unless its sender was faster.
  bool take_back(Request* posted);
  // Its sender took it by the advert, and tells when all of it is there.
  bool is_claimed(const Request& receive) const {
    const Row* row = rows_.find(receive);
    return row && row->claimed;
  }
  // The receive that a frame of `peer` names, once it is landing; null: there is none.
  Request* landing(uint32_t id, Peer& peer);
  // A rank that is about to block in this send takes a receive that its peer has posted.
  bool claim(Request* send);

  // A request completes: nobody may copy for it any more, nor claim it again.
  void end_one_copy(Request* request);
  // True when something could be moved by this thread without waiting for anybody.
  bool has_runnable() const { return !pulls_.empty() || !pushes_.empty(); }

 private:
  // Beside what may be copied, on either side.
  struct Row {
    uint64_t away_since = 0;    // pulling, pushing: since when the other rank is seen outside MPI
    bool helpable : 1 = false;  // stands in the list: the other rank may have begun to copy
    bool shared : 1 = false;    // pulling, pushing: shared out between both ranks
    bool drained : 1 = false;   // shared: all is taken, the helper may still copy
    bool fresh : 1 = false;     // pulling alone: its user has not been asked whether it goes on
    bool claimed : 1 = false;   // receive: its sender took it by the advert
    bool asked : 1 = false;     // receive: its sender is to push. send: and can hand that back
  };

  bool is_withdrawn(Request* receive);
  void land_claimed(Request* receive);
  bool may_copy(Request* request);
  bool is_worth_pulling_on(Request* pull);
  void hand_over(Request* push);
  bool deliver_pull(Peer& peer, const FrameHeader& header, const char* body);
  void stream_instead(Request* request);
  void begin_copy(Request* request, Stage stage, base::List<Request>& list);
  bool is_on_its_way(const Peer& peer);
  void share(Request* request);
  void unshare(Request* request);
  bool next_piece(Request* request, shm::Piece& piece);
  Outcome copy(Request* request, uint64_t remote, const shm::Piece& piece, bool push,
               uint64_t& done);
  bool copy_on(Request* request);

  Messages& messages_;
  Streams& streams_;
  Beside<Row, Mark::direct> rows_;
  base::List<Request> pulls_;
  base::List<Request> pushes_;
  base::List<Request> helpable_;   // the other rank may have begun to copy
  uint64_t left_alone_since_ = 0;  // whose message it could help with is on its way; 0: not
  bool may_pull_ = true;
};

}  // namespace headway::protocols
