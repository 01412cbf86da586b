// Rings: the node's shared memory as a transport: frames to and from the ranks of this host.
// Thread: holder of the engine. Owner: the engine, whose Peers hold the ends of the rings, so that
// its fast paths find them without a detour. Invariant: a ring that is polled was announced by its
// sender (Node::take_newcomers).
#pragma once
#include <cstdint>

#include "base/vec.h"
#include "transports/shm/node.h"
#include "transports/shm/ring.h"
#include "transports/transport.h"

namespace headway::shm {

class Rings final : public transports::Transport {
 public:
  explicit Rings(Node& node) : node_(node) {}
  // The ranks of the node, by their numbers there, of which there will be so many.
  [[nodiscard]] bool prepare(uint32_t ranks, transports::Receiver* receiver);
  // Rank `peer` is the next number; its rings will end there.
  void add(uint32_t peer, Producer& out, Consumer& in);

  uint32_t caps() const override { return transports::same_host | transports::copies; }
  Outcome connect(uint32_t local, uint32_t& frame_max) override;
  Push push(uint32_t local, const FrameHeader& header, const void* head, uint32_t n,
            const Feed* feed, uint64_t cookie, transports::Urgency urgency) override;
  bool writable(uint32_t local) const override;
  bool reap(uint64_t budget) override;
  bool reap_peer(uint32_t, uint64_t budget) override { return reap(budget); }
  uint64_t rate(uint32_t) const override { return first_rate; }
  void press(bool on) override;
  bool is_pressed(uint32_t local) const override {
    return node_.page(local).pressure.load(std::memory_order_relaxed) != 0;
  }

  // A frame was not taken: nothing more is believed of its sender.
  void refuse(uint32_t local, const FrameHeader& header);
  // An envelope whose body, of at most inline_max bytes, is flat.
  Push push_small(uint32_t local, Producer& out, const Consumer& in, const FrameHeader& header,
                  const void* bytes) {
    const Push pushed = out.push_message(header, bytes, in.frames());
    // A receiver that is away is woken by a full ring whatever it waits for.
    node_.wake(local, pushed == Push::full ? uint32_t(event_any) : uint32_t(event_envelope));
    return pushed;
  }
  // The next frame of a ring has been handed on.
  void drop(uint32_t local, Consumer& in, const Cell& cell) {
    if (in.pop(cell)) node_.wake(local, event_credit);
  }

 private:
  static constexpr uint64_t first_rate = 5'000'000'000;  // until one has been measured
  static constexpr int frames_a_turn = 32;  // from one ring before the others get theirs
  struct Ends {
    uint32_t peer;
    Producer* out;
    Consumer* in;
  };
  void meet_newcomers();
  bool take(uint32_t local, const Cell& cell);

  Node& node_;
  transports::Receiver* receiver_ = nullptr;
  base::Vec<Ends> ends_;      // by number
  base::Vec<uint32_t> open_;  // those that have opened a ring to us
};

}  // namespace headway::shm
