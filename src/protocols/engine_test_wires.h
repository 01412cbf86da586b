// For tests: wires between the engines of one process that do, by seed, all that a Transport may:
// `full` without a reason, `started` for what could have left, bodies that come in pieces cut at
// any byte, ends that are told late, peers whose frames come in any order between them. Thread:
// that of the test. Owner: the world. Invariant: frames of one wire arrive in the order in which
// they were pushed, each once and whole.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "protocols/engine.h"

namespace headway::protocols {

struct WireTally {
  uint64_t full = 0, started = 0, whole = 0, pieces = 0, late = 0;
};

class Wires {
 public:
  Wires(uint32_t ranks, uint64_t seed, uint32_t caps) : random_(seed), caps_(caps) {
    for (uint32_t i = 0; i < ranks; ++i) ends_.push_back(std::make_unique<End>(*this, i, ranks));
  }
  void attach(uint32_t rank, Engine& engine) {
    ends_[rank]->receiver = &engine;
    EXPECT_EQ(engine.use(*ends_[rank]), Outcome::ok);
  }
  bool are_empty() const {
    return std::all_of(ends_.begin(), ends_.end(), [](const auto& end) {
      return std::all_of(end->in.begin(), end->in.end(),
                         [](const auto& wire) { return wire.empty(); });
    });
  }
  WireTally tally;
  // Called when what watches for hosts has something, on the message thread of that rank.
  std::function<void(uint32_t rank)> on_hosts;

 private:
  struct Frame {
    FrameHeader header;
    std::string body;  // as far as it has left
    Feed feed;         // the rest comes from there
    uint64_t fed = 0;  // bytes of it that have left
    uint64_t cookie = 0;
    bool is_sent = true;  // it reads the feed no more
    bool has_begun = false;
    Landing landing;
    uint64_t arrived = 0;
  };
  using Wire = std::deque<std::unique_ptr<Frame>>;

  struct End final : transports::Transport {
    End(Wires& all, uint32_t self, uint32_t ranks)
        : wires(all), rank(self), in(ranks), leaving(ranks) {}

    uint32_t caps() const override { return wires.caps_; }
    Outcome connect(uint32_t, uint32_t& frame_max) override {
      frame_max = most_body;
      return Outcome::ok;
    }
    Push push(uint32_t peer, const FrameHeader& header, const void* head, uint32_t n,
              const Feed* feed, uint64_t cookie, transports::Urgency) override {
      const uint64_t fed = feed ? feed->length : 0;
      EXPECT_EQ(n + fed, header.length);
      EXPECT_LE(header.length, most_body);
      Wire& wire = wires.ends_[peer]->in[rank];
      if (leaving[peer] || wire.size() >= most_frames || wires.pick(6) == 0) {
        ++wires.tally.full;
        return Push::full;
      }
      auto frame = std::make_unique<Frame>();
      frame->header = header;
      if (n) frame->body.assign(static_cast<const char*>(head), n);
      if (fed) frame->feed = *feed;
      // Of a frame without a cookie nobody is told the end: it leaves at once.
      const bool starts = fed && cookie && wires.pick(2);
      if (starts) {
        frame->cookie = cookie;
        frame->is_sent = false;
        leaving[peer] = frame.get();
        receiver->unsent(1);
        ++wires.tally.started;
      } else {
        fill(*frame, fed);
      }
      wire.push_back(std::move(frame));
      return starts ? Push::started : Push::done;
    }
    bool writable(uint32_t peer) const override {
      return !leaving[peer] && wires.ends_[peer]->in[rank].size() < most_frames;
    }
    bool reap(uint64_t) override {
      // In another order each time.
      const uint32_t ranks = uint32_t(in.size()), first = uint32_t(wires.pick(ranks));
      bool moved = false;
      for (uint32_t i = 0; i < ranks; ++i) moved |= reap_peer((first + i) % ranks, 0);
      return moved;
    }
    bool reap_peer(uint32_t peer, uint64_t) override {
      const bool left = leave_some(peer);
      return arrive_some(peer) || left;
    }
    void look_at_hosts() override {
      if (wires.on_hosts) wires.on_hosts(rank);
    }
    uint64_t rate(uint32_t) const override { return wires.pick(2) ? 0 : slow_rate; }
    void redirect(uint32_t peer, const void* token, ptrdiff_t by) override {
      if (in[peer].empty()) return;
      Frame& frame = *in[peer].front();
      if (frame.has_begun && frame.landing.token == token) frame.landing.flat += by;
    }
    uint64_t enough(uint32_t, uint64_t, uint64_t) const override {
      return wires.pick(2) ? 0 : most_body;
    }
    uint64_t in_flight(uint32_t peer) const override {
      uint64_t bytes = 0;
      for (const auto& frame : wires.ends_[peer]->in[rank]) bytes += frame->header.length;
      return bytes;
    }

    static void fill(Frame& frame, uint64_t n) {
      const size_t before = frame.body.size();
      frame.body.resize(before + n);
      frame.feed.copy(frame.fed, frame.body.data() + before, n);
      frame.fed += n;
    }
    // Of the frame to that peer that reads its message yet. The end of one that has wholly left is
    // told some time later; it may wholly have arrived by then.
    bool leave_some(uint32_t peer) {
      Frame* frame = leaving[peer];
      if (!frame || wires.pick(3) == 0) return false;
      const uint64_t rest = frame->feed.length - frame->fed;
      if (rest) {
        fill(*frame, 1 + wires.random_() % rest);
        return true;
      }
      frame->is_sent = true;
      leaving[peer] = nullptr;
      ++wires.tally.late;
      const uint64_t cookie = frame->cookie;
      wires.forget(wires.ends_[peer]->in[rank]);
      receiver->unsent(-1);
      receiver->sent(peer, cookie);
      return true;
    }
    bool arrive_some(uint32_t peer) {
      bool moved = false;
      for (int times = wires.pick(4); times > 0; --times) {
        if (!arrive_piece(peer)) break;
        moved = true;
      }
      return moved;
    }
    // The handlers may push frames, and reap: nothing of this end is held meanwhile.
    bool arrive_piece(uint32_t peer) {
      Wire& wire = in[peer];
      wires.forget(wire);
      if (wire.empty()) return false;
      Frame& frame = *wire.front();
      const FrameHeader header = frame.header;
      if (!frame.has_begun) {
        if (header.length <= transports::always_whole || wires.pick(3) == 0) {
          if (frame.body.size() < header.length || !frame.is_sent) return false;
          const std::unique_ptr<Frame> taken = std::move(wire.front());
          wire.pop_front();
          ++wires.tally.whole;
          EXPECT_TRUE(receiver->frame(peer, header, taken->body.data())) << "garbage";
          return true;
        }
        Landing landing;
        EXPECT_TRUE(receiver->begin(peer, header, landing)) << "garbage";
        frame.landing = landing;
        frame.has_begun = true;
      }
      const uint64_t have = frame.body.size() - frame.arrived;
      if (!have) return false;
      const uint64_t n = 1 + wires.random_() % have;
      frame.landing.store(frame.arrived, frame.body.data() + frame.arrived, n);
      frame.arrived += n;
      ++wires.tally.pieces;
      receiver->landed(peer, header, frame.landing, frame.arrived);
      if (frame.arrived == header.length) receiver->end(peer, header, frame.landing);
      return true;
    }

    Wires& wires;
    const uint32_t rank;
    Engine* receiver = nullptr;
    std::vector<Wire> in;         // by sender
    std::vector<Frame*> leaving;  // by receiver: what still reads its message
  };

  int pick(size_t of) { return int(random_() % of); }
  // What has wholly arrived, and whose sender knows that it has left, is gone.
  static void forget(Wire& wire) {
    while (!wire.empty() && wire.front()->has_begun && wire.front()->is_sent &&
           wire.front()->arrived == wire.front()->header.length) {
      wire.pop_front();
    }
  }

  static constexpr uint32_t most_body = 64 << 10;
  static constexpr size_t most_frames = 6;
  static constexpr uint64_t slow_rate = 12'500'000;  // 100 Mbit/s

  std::mt19937_64 random_;
  const uint32_t caps_;
  std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace headway::protocols
