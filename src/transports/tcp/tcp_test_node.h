// TestNode: one rank of a job of several in one process and one thread, which keeps whatever its
// transport hands it. Thread: the test's. Owner: the test. Invariant: every wait has an end.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <poll.h>
#include <string>
#include <utility>
#include <vector>

#include "transports/tcp/tcp.h"

namespace headway::tcp {

struct Frame {
  uint32_t peer;
  FrameHeader header;
  std::string body;
  bool landed;
};

struct Loss {
  uint32_t peer;
  Outcome why;
  std::string story;
};

// Where bodies go: flat memory, memory behind an unpack function, or less than was sent.
enum class Place { flat, unpacked, cut };

struct TestNode : Receiver {
  Tcp tcp;
  Config config;
  std::vector<Frame> frames;
  std::vector<Loss> losses;
  std::vector<uint64_t> sent_cookies;
  Place place = Place::flat;
  uint32_t refuse_kind = 0x1000;  // frames of this kind are garbage
  std::vector<std::unique_ptr<std::string>> bodies;
  uint64_t last_arrived = 0;
  int unsent_links = 0;
  bool in_need = false;  // an operation with any peer is not complete
  std::vector<uint32_t> leavers;
  std::function<bool(const char*, size_t)> open_memory;  // of a body that cannot be written
  std::function<void()> when_landed;                     // once
  char* body_place = nullptr;                            // instead of `bodies`

  TestNode(uint32_t rank, uint32_t size, const char* interface = "lo") {
    config.rank = rank;
    config.size = size;
    memset(config.secret, 0x5a, sizeof config.secret);
    config.interface = interface;
  }
  ~TestNode() { tcp.finish(); }

  bool start() {
    const Outcome done = tcp.start(config, this);
    EXPECT_EQ(done, Outcome::ok) << tcp.explanation();
    return done == Outcome::ok;
  }
  std::string card() const {
    char text[1024];
    return tcp.card(text, sizeof text) ? text : "";
  }

  static void unpack(void* memory, uint64_t offset, const void* in, size_t n) {
    static_cast<std::string*>(memory)->replace(offset, n, static_cast<const char*>(in), n);
  }

  bool frame(uint32_t peer, const FrameHeader& header, const char* body) override {
    if (header.kind == refuse_kind) return false;
    frames.push_back({peer, header, std::string(body, header.length), false});
    return true;
  }
  void unsent(int by) override { unsent_links += by; }
  bool begin(uint32_t, const FrameHeader& header, Landing& landing) override {
    if (header.kind == refuse_kind) return false;
    EXPECT_GT(header.length, always_whole);
    landing.length = place == Place::cut ? header.length / 2 + 1 : header.length;
    bodies.push_back(std::make_unique<std::string>(landing.length, '\0'));
    landing.memory = landing.token = bodies.back().get();
    if (place == Place::unpacked) {
      landing.unpack = unpack;
    } else {
      landing.flat = body_place ? body_place : bodies.back()->data();
    }
    last_arrived = 0;
    return true;
  }
  bool make_writable(const char* from, size_t n) override {
    return open_memory && open_memory(from, n);
  }
  void landed(uint32_t, const FrameHeader& header, const Landing&, uint64_t arrived) override {
    EXPECT_GT(arrived, last_arrived);
    EXPECT_LE(arrived, header.length);
    last_arrived = arrived;
    if (const auto act = std::exchange(when_landed, nullptr)) act();
  }
  void end(uint32_t peer, const FrameHeader& header, const Landing& landing) override {
    EXPECT_EQ(last_arrived, header.length);
    frames.push_back({peer, header, *static_cast<std::string*>(landing.token), true});
  }
  bool needs(uint32_t) override { return in_need; }
  void left(uint32_t peer) override { leavers.push_back(peer); }
  void sent(uint32_t, uint64_t cookie) override { sent_cookies.push_back(cookie); }
  void lost(uint32_t peer, Outcome why, const char* story) override {
    losses.push_back({peer, why, story});
  }

  Push send(uint32_t peer, const std::string& body, uint32_t number = 0, uint8_t kind = 1) {
    FrameHeader header;
    header.kind = kind;
    header.length = uint32_t(body.size());
    header.sequence = number;
    return tcp.push(peer, header, body.data(), uint32_t(body.size()), nullptr, 0,
                    transports::Urgency::envelope);
  }
  Push feed(uint32_t peer, const std::string& head, const Feed& from, uint64_t cookie,
            uint32_t number = 0) {
    FrameHeader header;
    header.kind = 2;
    header.length = uint32_t(head.size() + from.length);
    header.sequence = number;
    return tcp.push(peer, header, head.data(), uint32_t(head.size()), &from, cookie,
                    transports::Urgency::data);
  }
  bool readable() const {
    pollfd p = {tcp.descriptor(), POLLIN, 0};
    return poll(&p, 1, 0) == 1;
  }
};

using Nodes = std::vector<TestNode*>;

inline void swap_cards(const Nodes& nodes) {
  for (TestNode* to : nodes) {
    for (TestNode* from : nodes) {
      if (to == from) continue;
      ASSERT_EQ(to->tcp.set_card(from->config.rank, from->card().c_str()), Outcome::ok);
    }
  }
}

// Reaps all nodes until `done` or the time is over.
template <typename Done>
bool drive(const Nodes& nodes, Done done, int limit_ms = 10'000) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  while (!done()) {
    bool moved = false;
    for (TestNode* node : nodes) moved |= node->tcp.reap(1 << 20);
    if (moved) continue;
    if (std::chrono::steady_clock::now() > end) return done();
    pollfd fds[8];
    size_t n = 0;
    for (TestNode* node : nodes) fds[n++] = {node->tcp.descriptor(), POLLIN, 0};
    poll(fds, n, 5);
  }
  return true;
}

template <typename Try>
bool push_until_taken(const Nodes& nodes, Try attempt) {
  return drive(nodes, [&] { return attempt() != Push::full; });
}

inline std::string pattern(size_t n, unsigned seed) {
  std::string out(n, '\0');
  uint32_t state = seed * 2654435761u + 1;
  for (char& c : out) {
    state = state * 1664525u + 1013904223u;
    c = char(state >> 24);
  }
  return out;
}

}  // namespace headway::tcp
