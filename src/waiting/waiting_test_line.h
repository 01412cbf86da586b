// What the tests of waits share: an engine, rank 0 of two, over a line on which nothing moves but
// what the test moves, frame by frame. Thread: each test's own. Owner: the test. Invariant: none.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "protocols/engine.h"
#include "protocols/wire.h"
#include "waiting/waiter.h"

namespace headway::waiting {

inline constexpr uint64_t page = 4096, bytes = 64 * page;

inline void on_fatal(Outcome, uint32_t, const char* story) {
  ADD_FAILURE() << story;
  abort();
}

// Takes whatever it is given. What comes is what the test gives to the engine, or, when somebody
// looks, what it has left here.
struct Line final : transports::Transport {
  uint32_t caps() const override { return transports::in_place; }
  Outcome connect(uint32_t, uint32_t& frame_max) override {
    frame_max = 16 * page;
    return Outcome::ok;
  }
  Push push(uint32_t, const FrameHeader&, const void*, uint32_t, const Feed*, uint64_t,
            transports::Urgency) override {
    return Push::done;
  }
  bool writable(uint32_t) const override { return true; }
  bool reap(uint64_t) override {
    if (!arrives) return false;
    std::exchange(arrives, nullptr)();
    return true;
  }
  bool reap_peer(uint32_t, uint64_t budget) override { return reap(budget); }

  std::function<void()> arrives;
};

inline constexpr Policy dozes_at_once{.crowded = true, .spin_ns = 0, .yield_ns = 0};

struct Memory {
  explicit Memory(uint64_t all = bytes + page) : size(all) {
    base = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~Memory() { munmap(base, size); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  const uint64_t size;
  char* base;
};

class OverALine {
 protected:
  using Request = protocols::Request;

  void start(uint64_t early_release, bool on_one_node = false, bool with_thread = true) {
    settings::Settings settings;
    settings.progress = with_thread;
    settings.early_release = early_release;
    settings.release_threshold_us = 0;  // every long message is worth it
    ASSERT_EQ(engine_.prepare(settings, 0, 2, on_fatal), Outcome::ok);
    if (on_one_node) {
      const uint32_t both[] = {0, 1};
      char key[128];
      ASSERT_EQ(engine_.node().create(2, key, sizeof key), Outcome::ok);
      ASSERT_EQ(other_.attach(key, 2), Outcome::ok);
      engine_.node().join(0, engine_.handoff().bell());
      other_.join(1, engine_.handoff().bell());
      ASSERT_EQ(engine_.use_node(both, 2), Outcome::ok);
    } else {
      ASSERT_EQ(engine_.use(line_), Outcome::ok);
    }
    if (early_release && !engine_.release().may_release())
      GTEST_SKIP() << "no pages can be closed here";
  }
  void stop() {
    engine_.handoff().stop();
    engine_.stop_guard();
    if (other_.active()) other_.detach();
    if (engine_.node().active()) engine_.node().detach();
  }

  Request* post(char* buffer, int tag = 1, uint64_t size = bytes) {
    Request* receive = engine_.take_request();
    receive->kind = protocols::RequestKind::receive;
    receive->held_by_user = true;
    receive->memory = protocols::UserMemory(buffer, size);
    receive->key = {2, 1, tag};
    receive->peer = engine_.peer(1);
    engine_.handoff().enter();
    engine_.start_receive(receive);
    engine_.handoff().leave();
    return receive;
  }
  void give(const FrameHeader& header, const void* body) {
    ASSERT_TRUE(engine_.frame(1, header, static_cast<const char*>(body)));
  }
  // The message of the receive is announced.
  void announce(const char* address = nullptr, int tag = 1, uint64_t size = bytes) {
    protocols::RequestSend body{};
    body.size = size;
    body.address = reinterpret_cast<uint64_t>(address);
    FrameHeader header;
    header.kind = uint8_t(protocols::Kind::request_send);
    header.length = sizeof body;
    header.tag = tag;
    header.source = 1;
    header.context = 2;
    give(header, &body);
  }
  void come_short(int tag) {
    FrameHeader header;
    header.kind = uint8_t(protocols::Kind::eager);
    header.length = 8;
    header.tag = tag;
    header.source = 1;
    header.context = 2;
    give(header, "a word.");
  }
  void come(const Request* receive, uint64_t offset, uint64_t length) {
    static const char body[page] = {};
    FrameHeader header;
    header.kind = uint8_t(protocols::Kind::data);
    header.word = protocols::wire_id(receive->pool_index, receive->generation);
    header.context = offset;
    header.length = uint32_t(length);
    give(header, body);
  }
  void come_all(const Request* receive, uint64_t from, uint64_t to) {
    for (uint64_t at = from; at < to; at += page) come(receive, at, page);
  }
  // By this thread, once the message thread is up, and by others that have tried.
  bool can_close() {
    bool closed = false;
    const uint64_t start = base::now_ns();
    while (!closed && base::now_ns() - start < 1'000'000'000) {
      Request* receive = post(memory_.base);
      engine_.handoff().enter();
      announce();
      closed = engine_.release().close_rest(receive);
      come_all(receive, 0, bytes);
      engine_.handoff().leave();
      end(receive);
    }
    return closed;
  }
  void end(Request* receive) {
    engine_.handoff().enter();
    if (!receive->done) engine_.complete(receive, Outcome::ok);
    engine_.give_request(receive);
    engine_.handoff().leave();
  }

  Line line_;
  protocols::Engine engine_;
  shm::Node other_;
  base::Whereabouts where_;
  Waiter waiter_{engine_, dozes_at_once, where_};
  Memory memory_;
};

}  // namespace headway::waiting
