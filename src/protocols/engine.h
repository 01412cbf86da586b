// Engine: moves messages between this process and its peers: matching, eager messages, handshakes;
// the ways and mechanisms beside it are members of their own classes. Thread: every member needs
// the engine (Handoff::enter), except where it says otherwise. Owner: runtime. Invariants:
// envelopes to one peer leave in the order of start_send(); a request is in at most one list, of a
// peer's or a mechanism's; nothing here calls malloc, stdio or user code.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "base/counter.h"
#include "base/list.h"
#include "base/vec.h"
#include "matching/matcher.h"
#include "progress/handoff.h"
#include "protocols/copies/copies.h"
#include "protocols/engine_counters.h"
#include "protocols/frames.h"
#include "protocols/messages/unexpected.h"
#include "protocols/peers.h"
#include "protocols/prefetch/fetch.h"
#include "protocols/prefetch/presend.h"
#include "protocols/reach.h"
#include "protocols/release/release.h"
#include "protocols/transfer.h"
#include "protocols/ways/one_copy.h"
#include "protocols/ways/order.h"
#include "protocols/ways/pieces.h"
#include "protocols/ways/stream.h"
#include "protocols/wire.h"
#include "settings/options.h"
#include "transports/shm/node.h"
#include "transports/shm/rings.h"
#include "transports/transport.h"

namespace headway::protocols {

// Told when a peer is gone for good or the engine cannot go on; does not return to the engine's
// work (runtime ends the process with the story).
using FatalHandler = void (*)(Outcome why, uint32_t peer, const char* story);

class Engine final : public progress::Work, public transports::Receiver {
 public:
  Outcome prepare(const settings::Settings& settings, uint32_t rank, uint32_t size,
                  FatalHandler fatal, uint32_t job = 0);
  // Ranks of this node share memory from now on: peers[local_ranks[i]] is number i there.
  Outcome use_node(const uint32_t* local_ranks, uint32_t count);
  // All others are reached by this transport, by their ranks. It has been started.
  Outcome use(transports::Transport& transport);

  // By its number: made if need be (null: no memory); or null if it has not been made.
  Peer* peer(uint32_t process) { return peers_.get(process); }
  Peer* find_peer(uint32_t process) const { return peers_.find(process); }
  Copies& copies() { return copies_; }
  const Copies& copies() const { return copies_; }
  // A thread that has waited goes on.
  void end_wait() { streams_.thread_goes(); }
  Release& release() { return release_; }
  const Release& release() const { return release_; }
  const Presends& presends() const { return presends_; }
  Unexpected& unexpected() { return unexpected_; }
  const Unexpected& unexpected() const { return unexpected_; }
  uint32_t rank() const { return rank_; }

  // Requests. take() is null without memory.
  Request* take_request() { return requests_.take(); }
  void give_request(Request* request);
  Request* find_request(uint32_t index, uint32_t generation) {
    return requests_.find(index, generation);
  }
  // Of one whose bytes are on their way, or about to be.
  Transfer& transfer(const Request& request) const { return requests_.transfers[request]; }

  // --- sending ---
  // Now and then before a send from outside the engine: whoever does nothing but send over a socket
  // would never hear that the other side has had enough (unexpected.cc).
  void hear(Peer& peer) {
    if (!peer.on_this_host() && peer.sequence % hear_every == hear_every - 1) [[unlikely]]
      peer.transport->reap_peer(peer.number, reap_budget);
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
  bool receive_now(Peer& peer, const matching::Key& key, const UserMemory& memory, uint64_t& bytes);
  // The same for one that lies here already. False, too, if more is to be done than to copy it.
  // `source`, `tag`: whose it is.
  bool receive_arrived(const matching::Key& key, const UserMemory& memory, uint64_t& bytes,
                       int& source, int& tag);
  // The receive of a message that a matched probe took out of the queue.
  void start_matched_receive(Request* request, Arrived* message);
  // Takes a receive or send back if it still can; it is complete then, and marked cancelled. A send
  // may first ask its peer: its request completes either way.
  void cancel(Request* request);

  // A request is under way from begin() to complete(); both are the only ways.
  void begin(Request& request) {
    HEADWAY_CHECK(request.taken && request.stage() == Stage::idle && !request.has(Mark::transfer));
    ++handoff.pending;
    request.done.store(Done::no, std::memory_order_relaxed);
    request.outcome = Outcome::ok;
  }
  void complete(Request* request, Outcome outcome);
  void set_stage(Request& request, Stage next) {
    HEADWAY_CHECK(may_follow(request.stage_, next));
    --stages_[size_t(request.stage_)];
    ++stages_[size_t(next)];
    request.stage_ = next;
  }
  uint32_t in_stage(Stage stage) const { return stages_[size_t(stage)]; }

  // --- frames of other rooms (Frames has their kinds) ---
  // Sends one now, behind all that was sent to that peer before. `full`: nothing has left; try
  // again after an advance(). A body that is flat, or of at most 32 KB, is the caller's again at
  // once.
  Push push(Peer& peer, const FrameHeader& header, const Feed* body, transports::Urgency urgency) {
    return ready(peer) ? push_frame(peer, header, nullptr, 0, body, 0, urgency) : Push::full;
  }
  // Sends a short one (its body is at most a ClearSend), now or as soon as there is room.
  void control(Peer& peer, const FrameHeader& header, const void* body,
               transports::Urgency urgency = transports::Urgency::control);

  // --- waiting ---
  // This thread begins to wait for that receive, at base::call_site.
  void note_wait(Request* receive) {
    receive->awaited = true;
    streams_.grant_next();
    release_.note_wait(receive);
    fetches_.prefetch(receive);
  }
  // This thread looks what has come, and does not wait.
  void note_look() { streams_.note_look(); }

  // --- progress ---
  bool advance() override;
  void hand_on() override;
  uint32_t wanted() override;
  void awake() override { streams_.look_again(); }
  void thread_begins() override { release_.exempt_thread(); }
  void faults() override { release_.serve_touches(); }
  void hosts() override;
  bool is_awaited() override { return release_.is_awaited(); }
  // The same as advance(), but looks at one peer's ring or socket first (null: all).
  bool advance_for(Peer* peer);

  // What is not finished, for MPI_Finalize and the state dump.
  bool is_idle() const;
  // The same for the operations that have `communicator`, or its point-to-point context. Looks at
  // every request: for rare calls.
  bool is_idle(const void* communicator, uint64_t context) const;
  // Nothing but receives that no message came for.
  bool only_receives_left() const {
    return under_way() == int64_t(in_stage(Stage::posted)) && busy_.empty();
  }
  size_t posted_count() const { return posted.size(); }

  // This rank has nothing left to do in MPI and may end at any time, which is no loss to its peers
  // once is_delivered(); until wake().
  void rest();
  bool is_delivered() const;
  void wake();
  // Nothing is sent, or asked for, before its send any more; until wake().
  void stop_prefetching();
  // Opens what is closed, and watches no memory any more: before the end, and in a child.
  void stop_guard();

  progress::Handoff handoff;
  shm::Node node;
  // The program will not use some wildcards with this context.
  void promise(uint64_t context, bool no_any_source, bool no_any_tag) {
    promises_.note(context, no_any_source, no_any_tag);
  }
  // The communicator with this context and the next one is gone.
  void forget(uint64_t context);

  matching::PostedQueue posted;
  // What may not be closed. Whoever begins an operation has looked, with the engine held, that its
  // memory is open (waiting::Waiter::open).
  Reach reach{requests_};
  EngineCounters counters;
  Frames frames;
  bool crowded = false;  // more ranks than cores on this machine
  // Schedules that want every message to wake the message thread.
  uint32_t schedules = 0;

  // transports::Receiver
  bool frame(uint32_t peer, const FrameHeader& header, const char* body) override;
  bool begin(uint32_t peer, const FrameHeader& header, Landing& landing) override;
  void landed(uint32_t peer, const FrameHeader& header, const Landing& landing,
              uint64_t arrived) override;
  void end(uint32_t peer, const FrameHeader& header, const Landing& landing) override;
  bool make_writable(const char* from, size_t n) override {
    return presends_.make_writable(from, n);
  }
  void sent(uint32_t peer, uint64_t cookie) override;
  void unsent(int by) override;
  bool needs(uint32_t peer) override;
  void left(uint32_t peer) override;
  void lost(uint32_t peer, Outcome why, const char* story) override;
  const char* kind_name(uint8_t kind) const override { return frames.name_of(kind); }

 private:
  friend class Copies;
  friend class OneCopy;
  friend class Streams;
  friend class Release;
  friend class Fetches;
  friend class Presends;
  friend class Unexpected;
  static constexpr int hot_looks = 128;  // at the ring that a rank waits for
  // The same where the ordinary way has to tell peers twice who is inside.
  static constexpr int hotter_looks = 1024;
  static constexpr uint32_t most_in_a_row = 16;     // receives that look at nothing else
  static constexpr uint64_t reap_budget = 1 << 20;  // bytes taken in by one look at a transport
  static constexpr uint32_t most_transports = 3;    // beside shared memory
  static constexpr uint32_t hear_every = 64;        // sends

  // Bytes [offset, offset + n) of that receive's message are in their place.
  void note_arrival(Request* receive, uint64_t offset, uint64_t n) {
    release_.note_arrival(receive, offset, n);
    if (handoff.has_dozers()) [[unlikely]]
      release_.tell_dozers(receive);
  }
  // Its user has gone on without it.
  void note_gone(Request* receive) { fetches_.prefetch(receive); }
  void note_received(uint64_t bytes) {
    ++counters.messages_received;
    counters.bytes_received += bytes;
  }
  void note_sent(uint64_t bytes) {
    ++counters.messages_sent;
    counters.bytes_sent += bytes;
  }

  // engine.cc
  void connect(Peer& peer);
  bool ready(Peer& peer) {
    if (!peer.connected) [[unlikely]]
      connect(peer);
    return peer.controls.empty() && peer.held.empty();
  }
  void mark_busy(Peer& peer);
  bool flush_busy();
  bool flush(Peer& peer);
  bool take_frame(Peer& peer, const shm::Cell& cell);
  bool reap_others();
  void fail(Outcome why, Peer& peer, const char* story);
  void end_marked(Request* request);

  // send.cc
  Push push_frame(Peer& peer, const FrameHeader& header, const void* head, uint32_t n,
                  const Feed* feed, uint64_t cookie, transports::Urgency urgency);
  Push push_envelope(Request* request);
  bool wants_handshake(const Peer& peer, const Request* request) const;
  void start_send_to_self(Request* request);
  bool deliver_clear_send(Peer& peer, const FrameHeader& header, const char* body);
  void retire_send(Request* request);

  // Without the one that stands for listening to requests.
  int64_t under_way() const { return handoff.pending - presends_.follows(); }

  // receive.cc
  Request* match(const FrameHeader& header);
  void begin_receive(Request* request);
  void add_frames();
  bool deliver(Peer& peer, const FrameHeader& header, const char* body);
  void note_seen(Peer& peer, const FrameHeader& header);
  bool deliver_eager(Peer& peer, const FrameHeader& header, const char* body);
  bool deliver_request_send(Peer& peer, const FrameHeader& header, const char* body);
  bool deliver_finished(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_acknowledge(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_cancel(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_cancel_answer(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_pressure(Peer& peer, const FrameHeader& header, const char*);
  bool begin_eager(Peer& peer, const FrameHeader& header, Landing& landing);
  void eager_landed(const FrameHeader& header, const Landing& landing, uint64_t arrived);
  void end_eager(uint32_t from, const FrameHeader& header, const Landing& landing);
  void end_unexpected(uint32_t from, const FrameHeader& header, const Landing& landing);
  void describe(Request* receive, const matching::Key& key, uint64_t size, Peer& peer);
  void accept(Request* receive, Arrived* message);
  void finish_eager(Request* receive, Arrived* message);
  void answer_request(Request* receive, Peer& peer, const RequestSend& asked, uint32_t send,
                      bool sender_waits, Store* store);
  void clear_to_send(Request* receive, Way way, Store* store = nullptr);

  settings::Settings settings_;
  uint32_t rank_ = 0;
  Peers peers_;
  FatalHandler fatal_ = nullptr;
  std::atomic<uint32_t> own_armed_{0};  // stands in until the segment is there

  matching::Promises promises_;
  Requests requests_;
  base::Vec<Peer*> busy_;  // peers with something to flush
  shm::Rings rings_{node};
  transports::Transport* others_[most_transports] = {};  // beside it
  uint32_t other_count_ = 0;
  uint64_t receives_begun_ = 0;
  uint32_t stages_[stage_count] = {};  // requests in each; idle: how many less than at first
  uint32_t reap_round_ = 0;
  uint32_t in_a_row_ = 0;  // receive_now() beside other receives

  Copies copies_{*this, requests_};
  OneCopy one_copy_{*this, requests_};
  Streams streams_{*this};
  Release release_{*this, requests_};
  Fetches fetches_{*this};
  Presends presends_{*this, requests_};
  Unexpected unexpected_{*this};
};

}  // namespace headway::protocols
