// Links: the ways to the peers: who they are, by which transport each is reached, and the frames
// that found no room. Thread: holder of the engine. Owner: the engine. Invariants: frames to one
// peer leave in the order in which they were given; a peer with something to flush stands in the
// list of busy ones.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "base/vec.h"
#include "protocols/peers.h"
#include "settings/options.h"
#include "transports/shm/node.h"
#include "transports/shm/rings.h"
#include "transports/transport.h"

namespace headway::protocols {

// Told when a peer is gone for good or the engine cannot go on; does not return to the engine's
// work (runtime ends the process with the story).
using FatalHandler = void (*)(Outcome why, uint32_t peer, const char* story);

class Links {
 public:
  static constexpr uint64_t reap_budget = 1 << 20;  // bytes taken in by one look at a transport

  explicit Links(const settings::Settings& settings) : settings_(settings) {}
  void prepare(FatalHandler fatal) { fatal_ = fatal; }
  // Ranks of this node share memory: local_ranks[i] is number i there. `self`: our own number.
  Outcome use_node(const uint32_t* local_ranks, uint32_t count, uint32_t self,
                   transports::Receiver* receiver);
  // All others are reached by this transport, by their ranks. It has been started.
  void use(transports::Transport& transport);
  // One that is looked at like the others, and reaches those whom its owner says.
  void look_at(transports::Transport& transport);

  Peers& peers() { return peers_; }
  shm::Node& node() { return node_; }
  const shm::Node& node() const { return node_; }
  shm::Rings& rings() { return rings_; }

  // --- what goes out ---
  // Nothing that was given before waits for room.
  bool is_ready(Peer& peer) {
    if (!peer.connected) [[unlikely]]
      connect(peer);
    return peer.backlog.controls.empty() && peer.backlog.held.empty();
  }
  // Sends a frame now, behind all that was sent to that peer before. `full`: nothing has left; try
  // again after an advance(). A body that is flat, or of at most 32 KB, is the caller's again at
  // once.
  Push push(Peer& peer, const FrameHeader& header, const Feed* body, transports::Urgency urgency) {
    return is_ready(peer) ? push_frame(peer, header, nullptr, 0, body, 0, urgency) : Push::full;
  }
  // The same past what waits; the head is part of the body, and goes first.
  Push push_frame(Peer& peer, const FrameHeader& header, const void* head, uint32_t n,
                  const Feed* feed, uint64_t cookie, transports::Urgency urgency);
  // Sends a short one (at most transports::always_whole), now or as soon as there is room: until
  // then a copy of it waits, so whoever sends many looks at is_ready() between them.
  void control(Peer& peer, const FrameHeader& header, const void* body,
               transports::Urgency urgency = transports::Urgency::control);
  // It looks at what it was sent even while it computes. A request to send and control frames see
  // to that themselves; an eager message, which its program may not wait for yet, does not.
  void rouse(Peer& peer) {
    if (peer.out.attached()) node().wake(peer.number, shm::event_control);
  }
  // The control frames that wait. False: one still does.
  bool flush_controls(Peer& peer, bool& moved);
  void drop_controls(Peer& peer);

  void mark_busy(Peer& peer);
  bool is_busy() const { return !busy_.empty(); }
  // Calls flush(peer) for each busy one. True if anything moved.
  template <class Flush>
  bool flush_busy(Flush&& flush) {
    bool moved = false;
    for (size_t i = 0; i < busy_.size();) {
      Peer& peer = *busy_[i];
      moved |= flush(peer);
      if (peer.backlog.is_empty()) {
        peer.backlog.listed = false;
        busy_.remove_unordered(i);
        moved = true;  // somebody may wait until nobody is busy
      } else {
        ++i;
      }
    }
    return moved;
  }

  // Told of each frame that goes by a transport of another host; null: nobody.
  using Watch = void (*)(void* owner, Peer& peer, const FrameHeader& header);
  void watch_pushes(Watch watch, void* owner) {
    watch_ = watch;
    watcher_ = owner;
  }

  // --- what comes in, beside the rings ---
  bool has_others() const { return other_count_ != 0; }
  // `all`: also those that are looked at by a system call.
  bool reap_others(bool all);
  void look_at_hosts();

  // --- the end ---
  void fail(Outcome why, Peer& peer, const char* story);
  void lost(uint32_t process, Outcome why, const char* story);
  void rest();
  bool is_delivered() const;
  void wake();

 private:
  static constexpr uint32_t most_transports = 3;  // beside shared memory

  void connect(Peer& peer);
  Push push_control(Peer& peer, const FrameHeader& header, const void* body,
                    transports::Urgency urgency);

  const settings::Settings& settings_;
  FatalHandler fatal_ = nullptr;
  Watch watch_ = nullptr;
  void* watcher_ = nullptr;
  Peers peers_;
  base::Vec<Peer*> busy_;  // peers with something to flush
  shm::Node node_;
  shm::Rings rings_{node_};
  transports::Transport* others_[most_transports] = {};  // beside it
  uint32_t other_count_ = 0;
};

}  // namespace headway::protocols
