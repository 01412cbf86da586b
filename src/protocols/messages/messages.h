// Messages: the plain way of a message: its send, its receive, its cancelling, and what frames of
// the first 16 kinds mean that no way or mechanism has for itself. Thread: holder of the engine.
// Owner: the engine, which is made of this and of the mechanisms. Invariants: envelopes to one peer
// leave in the order of start_send(); a request is in at most one list, of a peer's or a
// mechanism's.
#pragma once
#include <cstdint>

#include "matching/matcher.h"
#include "protocols/core.h"
#include "protocols/frames.h"
#include "protocols/messages/unexpected.h"

namespace headway::protocols {

class Messages : public Core {
 public:
  // --- sending ---
  // Now and then before a send from outside the engine: whoever does nothing but send over a socket
  // would never hear that the other side has had enough (unexpected.cc).
  void hear(Peer& peer) {
    if (!peer.on_this_host() && peer.sequence % hear_every == hear_every - 1) [[unlikely]]
      peer.transport->reap_peer(peer.number, Links::reap_budget);
  }
  // The whole message in one frame, now, without a request. False: not possible, nothing was done.
  bool send_now(Peer& peer, const FrameHeader& envelope, const UserMemory& memory);
  // Starts request->memory as a message with request->key (source: own rank in the communicator).
  void start_send(Request* request);

  // --- receiving ---
  // Starts a receive for request->key into request->memory.
  void start_receive(Request* request);
  // A small message that comes at this very moment, without a request. False: look for it in the
  // ordinary way, nothing was done. `bytes`: what it brought.
  // `once`: it is looked for once, not for a moment. `traffic`: of that message.
  bool receive_now(Peer& peer, const matching::Key& key, const UserMemory& memory, uint64_t& bytes,
                   bool once = false, matching::Traffic traffic = {});
  // The same for one that lies here already. False, too, if more is to be done than to copy it.
  // `source`, `tag`: whose it is.
  bool receive_arrived(const matching::Key& key, const UserMemory& memory, uint64_t& bytes,
                       int& source, int& tag);
  // The receive of a message that a matched probe took out of the queue.
  void start_matched_receive(Request* request, Arrived* message);
  // Takes a receive or send back if it still can; it is complete then, and marked cancelled. A send
  // may first ask its peer: its request completes either way.
  void cancel(Request* request);

  // --- the queues ---
  const matching::PostedQueue& posted() const { return posted_; }
  Unexpected& unexpected() { return unexpected_; }
  const Unexpected& unexpected() const { return unexpected_; }
  // The program will not use some wildcards with this context.
  void promise(uint64_t context, bool no_any_source, bool no_any_tag) {
    promises_.note(context, no_any_source, no_any_tag);
  }
  // The communicator with this context and the next one is gone.
  void forget(uint64_t context);
  // Frames of other rooms have kinds here, too.
  Frames& frames() { return frames_; }

  // --- for ways and mechanisms ---
  // The receive that takes a message. Those that their senders have claimed are taken already.
  Request* match(const FrameHeader& header);
  void describe(Request* receive, const matching::Key& key, uint64_t size, Peer& peer);
  // The same for a receive that is none of the program's.
  void fill_in(Request* receive, const matching::Key& key, uint64_t size, Peer& peer);
  void begin_receive(Request* request);
  // Chooses how a message that was announced comes over.
  void answer_request(Request* receive, Peer& peer, const RequestSend& asked, uint32_t send,
                      bool sender_waits, Store* store);
  void clear_to_send(Request* receive, Way way, Store* store = nullptr);
  // All of an unexpected message that this receive has taken is there.
  void finish_eager(Request* receive, Arrived* message);
  // Nobody but this rank may take a posted receive from now on; it stays in the queue. False: its
  // sender was faster, and it lands.
  bool take_back(Request* posted);
  bool would_take(const matching::Key& key, matching::Traffic traffic) {
    return posted_.takes(key, traffic);
  }
  void unpost(Request* receive) { posted_.remove(receive); }

 protected:
  // Of a job of so many. False without memory.
  [[nodiscard]] bool prepare_queues(uint32_t processes);
  void add_frames();
  bool deliver(Peer& peer, const FrameHeader& header, const char* body);
  // Sends the envelope, with the message if it is small. Takes the request out of the held list.
  Push push_envelope(Request* request);
  // The bytes of an eager message have left.
  void retire_send(Request* request);

  static constexpr int hot_looks = 128;  // at the ring that a rank waits for

  Frames frames_;
  matching::PostedQueue posted_;
  Unexpected unexpected_{*this};

 private:
  static constexpr uint32_t hear_every = 64;  // sends

  // send.cc
  bool wants_handshake(const Peer& peer, const Request* request);
  void start_send_to_self(Request* request);
  bool deliver_clear_send(Peer& peer, const FrameHeader& header, const char* body);

  // receive.cc
  void note_seen(Peer& peer, const FrameHeader& header);
  bool deliver_eager(Peer& peer, const FrameHeader& header, const char* body);
  bool deliver_request_send(Peer& peer, const FrameHeader& header, const char* body);
  bool deliver_finished(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_acknowledge(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_pressure(Peer& peer, const FrameHeader& header, const char*);
  bool begin_eager(Peer& peer, const FrameHeader& header, Landing& landing);
  void eager_landed(const FrameHeader& header, const Landing& landing, uint64_t arrived);
  void end_eager(uint32_t from, const FrameHeader& header, const Landing& landing);
  void end_unexpected(uint32_t from, const FrameHeader& header, const Landing& landing);
  void acknowledge(Peer& peer, uint32_t send);  // that its receive has begun
  void accept(Request* receive, Arrived* message);

  // cancel.cc
  bool deliver_cancel(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_cancel_answer(Peer& peer, const FrameHeader& header, const char*);

  matching::Promises promises_;
  uint64_t receives_begun_ = 0;
  uint32_t in_a_row_ = 0;  // receive_now() beside other receives
};

}  // namespace headway::protocols
