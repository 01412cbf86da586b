// What a recorder is told of a receive that returned early, and of who touched its pages too soon.
// One engine over a line that takes all; its sender is the test, and late.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "base/events_test_listener.h"
#include "protocols/engine.h"
#include "protocols/paged_test_toucher.h"

namespace headway::protocols {
namespace {

using base::EventListener;
constexpr uint64_t page = 4096, bytes = 16 * page;

class ReleaseEvents : public testing::Test, public transports::Transport {
 protected:
  uint32_t caps() const override { return transports::in_place; }
  Outcome connect(uint32_t, uint32_t& frame_max) override {
    frame_max = bytes;
    return Outcome::ok;
  }
  Push push(uint32_t, const FrameHeader&, const void*, uint32_t, const Feed*, uint64_t,
            transports::Urgency) override {
    return Push::done;
  }
  bool writable(uint32_t) const override { return true; }
  bool reap(uint64_t) override { return false; }
  bool reap_peer(uint32_t, uint64_t) override { return false; }

  void SetUp() override {
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
    memory_ = static_cast<char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    engine_.handoff().enter();
    if (!engine_.release().may_release()) GTEST_SKIP() << "no pages can be closed here";
  }
  void TearDown() override {
    engine_.handoff().leave();
    engine_.handoff().stop();
    engine_.stop_guard();
    munmap(memory_, bytes);
  }

  // A receive whose message is announced.
  Request* announced() {
    Request* receive = engine_.take_request();
    receive->kind = RequestKind::receive;
    receive->held_by_user = true;
    receive->memory = UserMemory(memory_, bytes);
    receive->key = {2, 1, 4};
    receive->peer = engine_.peer(1);
    engine_.start_receive(receive);
    RequestSend body{};
    body.size = bytes;
    FrameHeader header;
    header.kind = uint8_t(Kind::request_send);
    header.length = sizeof body;
    header.tag = 4;
    header.source = 1;
    header.context = 2;
    EXPECT_TRUE(engine_.frame(1, header, reinterpret_cast<const char*>(&body)));
    return receive;
  }
  void come(const Request* receive, uint64_t n) {
    const std::vector<char> body(n, 'd');
    FrameHeader header;
    header.kind = uint8_t(Kind::data);
    header.word = id_of(receive);
    header.context = engine_.transfer(*receive).moved;
    header.length = uint32_t(n);
    ASSERT_TRUE(engine_.frame(1, header, body.data()));
  }
  // One whose pages are closed. Null: they cannot be; threads come and go at their own time.
  Request* closed() {
    for (int i = 0; i < 2000; ++i) {
      Request* receive = announced();
      if (engine_.release().is_ready(receive) && engine_.release().close_rest(receive)) {
        return receive;
      }
      come(receive, bytes);
      engine_.give_request(receive);
      usleep(500);
    }
    return nullptr;
  }

  Engine engine_;
  char* memory_ = nullptr;
};

TEST_F(ReleaseEvents, AReleaseAndAFaultInIt) {
  EventListener listener;
  Toucher toucher(engine_.release());
  Request* receive = closed();
  if (!receive) GTEST_SKIP() << "no pages can be closed here";
  EXPECT_TRUE(EventListener::events(headway_event_release).empty());
  const uint64_t faults_before = engine_.release().closings().touched;
  engine_.release().let_user_go(receive);
  EXPECT_TRUE(EventListener::events(headway_event_release).empty()) << "it has only begun";
  toucher.touch(memory_ + 9 * page);
  for (int i = 0; i < 5000 && engine_.release().closings().touched == faults_before; ++i) {
    usleep(1000);
  }
  come(receive, 4 * page);
  EXPECT_TRUE(EventListener::events(headway_event_fault).empty()) << "that page has not come";
  come(receive, bytes - 4 * page);
  toucher.wait();
  EXPECT_EQ(receive->done.load(), Done::whole);

  const auto releases = EventListener::events(headway_event_release);
  const auto faults = EventListener::events(headway_event_fault);
  ASSERT_EQ(releases.size(), 1u);
  ASSERT_EQ(faults.size(), engine_.release().closings().touched - faults_before);
  ASSERT_GE(faults.size(), 1u);
  const HeadwayEvent& release = releases[0];
  EXPECT_LT(release.begin, release.end);
  EXPECT_EQ(release.bytes, bytes);
  EXPECT_EQ(release.peer, 1);
  EXPECT_EQ(release.thread, EventListener::thread);
  for (const HeadwayEvent& fault : faults) {
    EXPECT_LT(release.begin, fault.begin);
    EXPECT_LT(fault.begin, fault.end);
    EXPECT_LT(fault.end, release.end);
    EXPECT_EQ(fault.closing, release.closing);
  }
  engine_.give_request(receive);
}

// Its bytes are those that came behind the return.
TEST_F(ReleaseEvents, WhatHadComeBeforeTheReturnIsNotInIt) {
  EventListener listener;
  Request* receive = closed();
  if (!receive) GTEST_SKIP() << "no pages can be closed here";
  come(receive, 4 * page);
  engine_.release().let_user_go(receive);
  come(receive, bytes - 4 * page);
  const auto releases = EventListener::events(headway_event_release);
  ASSERT_EQ(releases.size(), 1u);
  EXPECT_EQ(releases[0].bytes, bytes - 4 * page);
  engine_.give_request(receive);
}

// A receive that was closed and whose user waited to the end all the same has not returned early.
TEST_F(ReleaseEvents, WhoWaitsIsNotReleased) {
  EventListener listener;
  Request* receive = closed();
  if (!receive) GTEST_SKIP() << "no pages can be closed here";
  come(receive, bytes);
  EXPECT_TRUE(EventListener::events(headway_event_release).empty());
  engine_.give_request(receive);
}

}  // namespace
}  // namespace headway::protocols
