// Engine: moves messages between this process and its peers: the plain way of a message (Messages,
// and Core below it), and beside it the ways and mechanisms, each a member of its own class. Here
// they are put together, and driven. Thread: every member needs the engine (Handoff::enter), except
// where it says otherwise. Owner: runtime. Invariant: nothing here calls malloc, stdio or user
// code.
#pragma once
#include <cstdint>

#include "protocols/copies/copies.h"
#include "protocols/messages/messages.h"
#include "protocols/prefetch/fetch.h"
#include "protocols/prefetch/presend.h"
#include "protocols/release/release.h"
#include "protocols/ways/one_copy.h"
#include "protocols/ways/stream.h"
#include "settings/options.h"
#include "transports/transport.h"

namespace headway::protocols {

class Engine final : public Messages, public transports::Receiver {
 public:
  Outcome prepare(const settings::Settings& settings, uint32_t rank, uint32_t size,
                  FatalHandler fatal, uint32_t job = 0);
  // Ranks of this node share memory from now on: peers[local_ranks[i]] is number i there.
  Outcome use_node(const uint32_t* local_ranks, uint32_t count);
  // All others are reached by this transport, by their ranks. It has been started.
  Outcome use(transports::Transport& transport);

  Copies& copies() { return copies_; }
  const Copies& copies() const { return copies_; }
  Release& release() { return release_; }
  const Release& release() const { return release_; }
  const Presends& presends() const { return presends_; }

  // --- waiting ---
  // This thread begins to wait for that receive, at base::call_site.
  void note_wait(Request* receive) {
    receive->awaited = true;
    streams_.note_wait(receive);
    release_.note_wait(receive);
    fetches_.note_wait(receive);
  }
  // The same for that one or any other, which does not change its turn.
  void note_wait_for_any(Request* receive) {
    if (!receive->wanted) fetches_.note_wait(receive);
    receive->wanted = true;
  }
  // It waits no longer, and goes back to the program.
  void end_wait() {
    if (streams_.has_spared()) [[unlikely]]
      send_on();
    presends_.end_wait();
  }
  // This thread looks what has come, and does not wait.
  void note_look() { streams_.note_look(); }

  // --- progress ---
  bool advance() override;
  bool hand_on() override;
  uint32_t wanted() override;
  void awake() override { streams_.look_again(); }
  void thread_begins() override { release_.exempt_thread(); }
  void faults() override { release_.serve_touches(); }
  void hosts() override { links_.look_at_hosts(); }
  bool is_awaited() override { return release_.is_awaited(); }
  // The same as advance(), but looks at one peer's ring or socket first (null: all).
  bool advance_for(Peer* peer);

  // What is not finished, for MPI_Finalize and the state dump.
  bool is_idle() const;
  // The same for operations with `communicator` or its point-to-point context. Slow: looks at all.
  bool is_idle(const void* communicator, uint64_t context) const;
  // Nothing but receives that no message came for.
  bool only_receives_left() const {
    return under_way() == int64_t(in_stage(Stage::posted)) && !links_.is_busy();
  }

  // This rank has nothing left to do in MPI and may end at any time, which is no loss to its peers
  // once is_delivered(); until wake().
  void rest();
  bool is_delivered() const { return links_.is_delivered(); }
  void wake();
  // Nothing is sent, or asked for, before its send any more; until wake().
  void stop_prefetching();
  // Opens what is closed, and watches no memory any more: before the end, and in a child.
  void stop_guard();

  // transports::Receiver
  bool frame(uint32_t peer, const FrameHeader& header, const char* body) override;
  using Core::begin;
  bool begin(uint32_t peer, const FrameHeader& header, Landing& landing) override;
  void landed(uint32_t peer, const FrameHeader& header, const Landing& landing,
              uint64_t arrived) override;
  void end(uint32_t peer, const FrameHeader& header, const Landing& landing) override;
  bool make_writable(const char* from, size_t n) override {
    return presends_.make_writable(from, n);
  }
  void sent(uint32_t peer, uint64_t cookie) override;
  void unsent(int by) override { handoff_.pending += by; }
  bool needs(uint32_t peer) override;
  void left(uint32_t peer) override;
  void lost(uint32_t peer, Outcome why, const char* story) override {
    links_.lost(peer, why, story);
  }
  const char* kind_name(uint8_t kind) const override { return frames_.name_of(kind); }

 private:
  // They tell the mechanisms what happens to a message.
  friend class Core;
  friend class Messages;

  [[gnu::noinline]] bool flush_busy();
  bool flush(Peer& peer);
  void send_on();
  bool take_frame(Peer& peer, const shm::Cell& cell);
  // Without those that stand for listening.
  int64_t under_way() const { return handoff_.pending - presends_.follows() - listening_; }

  std::atomic<uint32_t> own_armed_{0};  // stands in until the segment is there
  uint32_t reap_round_ = 0;

  Copies copies_{requests_};
  OneCopy one_copy_{*this, streams_, requests_};
  Streams streams_{*this, one_copy_};
  Release release_{*this, requests_};
  Fetches fetches_{*this, presends_};
  Presends presends_{*this, requests_};
};

inline Engine& Core::engine() { return static_cast<Engine&>(*this); }

}  // namespace headway::protocols
