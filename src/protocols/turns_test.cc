// Turns: in which order messages that wait for a grant get one, whatever their users begin and end
// to wait for. One engine over a line that takes all; what comes is what the test gives to it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "protocols/engine.h"

namespace headway::protocols {
namespace {

constexpr uint64_t page = 4096, bytes = 8 * page, frame_bytes = 4 * page;

class Turns : public testing::Test, public transports::Transport {
 protected:
  // --- the line ---
  uint32_t caps() const override { return transports::in_place; }
  Outcome connect(uint32_t, uint32_t& frame_max) override {
    frame_max = frame_bytes;
    return Outcome::ok;
  }
  Push push(uint32_t, const FrameHeader& header, const void*, uint32_t, const Feed*, uint64_t,
            transports::Urgency) override {
    if (Kind(header.kind) == Kind::grant) {
      EXPECT_EQ(header.source, 1);  // nobody else sends
      granted(*receives_[header.word]);
    }
    return Push::done;
  }
  bool writable(uint32_t) const override { return true; }
  bool reap(uint64_t) override { return false; }
  bool reap_peer(uint32_t, uint64_t) override { return false; }

  // --- the messages ---
  void start(uint32_t count) {
    settings::Settings settings;
    settings.early_release = 1;
    settings.release_threshold_us = 0;  // every long message is worth it
    ASSERT_EQ(engine_.prepare(settings, 0, 2,
                              [](Outcome, uint32_t, const char* story) {
                                ADD_FAILURE() << story;
                                abort();
                              }),
              Outcome::ok);
    ASSERT_EQ(engine_.use(*this), Outcome::ok);
    if (!engine_.release().may_release()) GTEST_SKIP() << "no pages can be closed here";
    size_ = count * bytes;
    memory_ = static_cast<char*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    engine_.handoff().enter();
    for (uint32_t i = 0; i < count; ++i) {
      Request* receive = engine_.take_request();
      receive->kind = RequestKind::receive;
      receive->held_by_user = true;
      receive->memory = UserMemory(memory_ + i * bytes, bytes);
      receive->key = {2, 1, int(i)};
      receive->peer = engine_.peer(1);
      engine_.start_receive(receive);
      receives_.push_back(receive);
    }
  }
  void TearDown() override {
    for (Request* receive : receives_) {
      EXPECT_TRUE(receive->done.load());
      engine_.give_request(receive);
    }
    if (memory_) engine_.handoff().leave();
    engine_.handoff().stop();
    engine_.stop_guard();
    if (memory_) munmap(memory_, size_);
  }

  // Its sender's name for it is its place.
  void announce(uint32_t place) {
    RequestSend body{};
    body.size = bytes;
    FrameHeader header;
    header.kind = uint8_t(Kind::request_send);
    header.length = sizeof body;
    header.word = place;
    header.tag = int(place);
    header.source = 1;
    header.context = 2;
    ASSERT_TRUE(engine_.frame(1, header, reinterpret_cast<const char*>(&body)));
  }
  void come(const Request* receive) {
    static const char body[frame_bytes] = {};
    FrameHeader header;
    header.kind = uint8_t(Kind::data);
    header.word = id_of(receive);
    header.context = engine_.transfer(*receive).moved;
    header.length = frame_bytes;
    ASSERT_TRUE(engine_.frame(1, header, body));
  }
  bool lands(const Request* receive) const { return receive->stage() == Stage::landing; }
  bool waits(const Request* receive) const {
    return lands(receive) && engine_.transfer(*receive).withheld;
  }
  // Its user goes on from closed pages, if they can be closed here.
  void release(Request* receive) {
    if (!receive->awaited || receive->done) return;
    if (!engine_.release().is_ready(receive) || !engine_.release().close_rest(receive)) return;
    engine_.release().let_user_go(receive);
  }

  // The one that its user needs most, and among those the first.
  static std::pair<int, int64_t> rank(const Request& receive) {
    return {receive.awaited ? 2 : receive.is_redirected(), -receive.key.tag};
  }
  void granted(const Request& receive) {
    ++granted_;
    for (const Request* other : receives_) {
      if (waits(other)) {
        EXPECT_GT(rank(receive), rank(*other));
      }
    }
  }
  bool all_over() const {
    return std::all_of(receives_.begin(), receives_.end(),
                       [](const Request* receive) { return receive->done == Done::whole; });
  }

  mutable Engine engine_;
  char* memory_ = nullptr;
  size_t size_ = 0;
  std::vector<Request*> receives_;
  uint32_t granted_ = 0;
};

TEST_F(Turns, AreThoseOfWhoIsNeededMostAndFirst) {
  constexpr uint32_t count = 200;
  start(count);
  if (IsSkipped()) return;
  const char* seed = getenv("HEADWAY_TEST_SEED");
  std::mt19937 random(seed ? uint32_t(strtoul(seed, nullptr, 0)) : 1);
  std::vector<uint32_t> order(count);
  for (uint32_t i = 0; i < count; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  uint32_t announced = 0;
  while (!all_over()) {
    const uint32_t place = uint32_t(random() % count);
    Request* receive = receives_[place];
    switch (random() % 8) {
      case 0:
      case 1:
        if (announced < count) announce(order[announced++]);
        break;
      case 2:
        // For some of them nobody waits.
        if (place % 3 && !receive->done && !receive->is_redirected()) engine_.note_wait(receive);
        break;
      case 3: release(receive); break;
      default:
        // What is granted comes, some of it now.
        if (lands(receive) && !waits(receive)) come(receive);
        break;
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(engine_.counters().withheld, granted_);
  EXPECT_GT(granted_, count / 2);
}

}  // namespace
}  // namespace headway::protocols
