// Events on their way to tools: their order, a full ring, and threads that put at the same time.
#include "base/tool_events.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace headway::base {
namespace {

ToolEvent made(uint64_t number, uint8_t kind = 0) {
  ToolEvent event = {};
  event.kind = kind;
  event.fields[0] = number;
  return event;
}

TEST(EventRing, ComesOutAsItWentIn) {
  static EventRing ring;
  ToolEvent event;
  EXPECT_FALSE(ring.take(event));
  uint64_t put = 0, taken = 0;
  for (int lap = 0; lap < 5; ++lap) {
    for (uint64_t i = 0; i < EventRing::room - 7; ++i) ASSERT_TRUE(ring.put(made(put++)));
    EXPECT_EQ(ring.count(), EventRing::room - 7);
    while (ring.take(event)) ASSERT_EQ(event.fields[0], taken++);
    EXPECT_EQ(taken, put);
  }
  EXPECT_EQ(ring.all_put(), put);
}

TEST(EventRing, AFullOneTakesNoMoreAndLosesNothing) {
  static EventRing ring;
  for (uint64_t i = 0; i < EventRing::room; ++i) ASSERT_TRUE(ring.put(made(i)));
  EXPECT_FALSE(ring.put(made(99)));
  ToolEvent event;
  ASSERT_TRUE(ring.take(event));
  EXPECT_EQ(event.fields[0], 0u);
  EXPECT_TRUE(ring.put(made(EventRing::room)));
  EXPECT_FALSE(ring.put(made(99)));
  for (uint64_t i = 1; i <= EventRing::room; ++i) {
    ASSERT_TRUE(ring.take(event));
    ASSERT_EQ(event.fields[0], i);
  }
  EXPECT_FALSE(ring.take(event));
}

// Each thread's own order stays, and what found no room is known to who puts.
TEST(EventRing, SeveralThreadsPut) {
  static EventRing ring;
  constexpr uint64_t threads = 4, each = 20'000;
  std::atomic<uint64_t> lost{0};
  std::atomic<uint32_t> ended{0};
  std::vector<std::thread> all;
  for (uint64_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (uint64_t i = 0; i < each; ++i) lost += !ring.put(made(i, uint8_t(t)));
      ++ended;
    });
  }
  uint64_t next[threads] = {}, taken = 0;
  ToolEvent event;
  for (bool last = false; !last;) {
    last = ended == threads;  // before the last look
    while (ring.take(event)) {
      ASSERT_LT(event.kind, threads);
      ASSERT_GE(event.fields[0], next[event.kind]);
      next[event.kind] = event.fields[0] + 1;
      ++taken;
    }
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(taken + lost, threads * each);
}

TEST(ToolEvents, WhatFindsNoRoomIsCounted) {
  const uint64_t put = events_put(), dropped = events_dropped();
  const uint64_t of_five = events_dropped(EventSource::pages, 5);
  const uint64_t field = 1;
  for (uint64_t i = 0; i < EventRing::room + 10; ++i) {
    put_event(5, EventSource::pages, &field, 1);
  }
  EXPECT_EQ(events_put(), put + EventRing::room);
  EXPECT_EQ(events_dropped(), dropped + 10);
  EXPECT_EQ(events_dropped(EventSource::pages, 5), of_five + 10);
  EXPECT_TRUE(events_wait());
  ASSERT_TRUE(begin_delivery());
  EXPECT_FALSE(events_wait()) << "somebody delivers";
  EXPECT_FALSE(begin_delivery());
  EXPECT_EQ(events_of(EventSource::pages), EventRing::room);
  ToolEvent event;
  uint64_t before = 0;
  while (take_event(EventSource::pages, event)) {
    EXPECT_GE(event.at, before);
    before = event.at;
  }
  end_delivery();
  EXPECT_FALSE(events_wait());
}

// What is left for later is told of again.
TEST(ToolEvents, WhatIsLeftWaits) {
  const uint64_t field = 1;
  put_event(1, EventSource::program, &field, 1);
  ASSERT_TRUE(begin_delivery());
  end_delivery();
  EXPECT_TRUE(events_wait());
  EXPECT_FALSE(events_wait_in_wait()) << "nobody may be called there";
  ASSERT_TRUE(begin_delivery());
  ToolEvent event;
  ASSERT_TRUE(take_event(EventSource::program, event));
  end_delivery();
  EXPECT_FALSE(events_wait());
}

// Whoever holds a lock in a wait has nothing handed over there.
TEST(ToolEvents, WhatIsKeptFromWaits) {
  const uint64_t field = 1;
  deliver_in_wait.store([] {});
  put_event(1, EventSource::program, &field, 1);
  EXPECT_TRUE(events_wait_in_wait());
  {
    const KeptFromWaits one;
    const KeptFromWaits other;
    EXPECT_FALSE(events_wait_in_wait());
    EXPECT_TRUE(events_wait()) << "between calls it is";
  }
  EXPECT_TRUE(events_wait_in_wait());
  deliver_in_wait.store(nullptr);
  ASSERT_TRUE(begin_delivery());
  ToolEvent event;
  ASSERT_TRUE(take_event(EventSource::program, event));
  end_delivery();
}

// The message thread has a source of its own.
TEST(ToolEvents, TheMessageThreadIsASource) {
  const uint64_t field = 1;
  std::thread([&] {
    note_message_thread();
    put_event(2, EventSource::program, &field, 1);
  }).join();
  ASSERT_TRUE(begin_delivery());
  EXPECT_EQ(events_of(EventSource::thread), 1u);
  EXPECT_EQ(events_of(EventSource::program), 0u);
  ToolEvent event;
  ASSERT_TRUE(take_event(EventSource::thread, event));
  EXPECT_EQ(event.kind, 2);
  end_delivery();
}

}  // namespace
}  // namespace headway::base
