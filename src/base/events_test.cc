// Events are told once, with their beginning and end, to whoever listens at both.
#include "base/events.h"

#include "base/events_test_listener.h"

namespace headway::base {
namespace {

TEST(Events, NobodyListens) {
  EXPECT_EQ(event_listener(), nullptr);
  const EventBegin began = begin_event();
  EXPECT_FALSE(began);
  end_event(began, {.kind = headway_event_release});
  lose_event();
}

TEST(Events, OneIsToldAtItsEnd) {
  EventListener listener;
  const EventBegin began = begin_event();
  ASSERT_TRUE(began);
  EXPECT_TRUE(EventListener::events(headway_event_release).empty());
  end_event(began, {.kind = headway_event_release, .bytes = 10, .peer = 3, .closing = 5});
  const auto told = EventListener::events(headway_event_release);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].begin, began.at);
  EXPECT_GT(told[0].end, began.at);
  EXPECT_EQ(told[0].bytes, 10u);
  EXPECT_EQ(told[0].peer, 3);
  EXPECT_EQ(told[0].closing, 5u);
  EXPECT_EQ(told[0].thread, EventListener::thread);
}

// Counters of two cores may differ a little.
TEST(Events, NoneEndsBeforeItBegins) {
  EventListener listener;
  const EventBegin early = begin_event(), late = begin_event();
  end_event(late, early, {.kind = headway_event_help});
  const auto told = EventListener::events(headway_event_help);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].begin, late.at);
  EXPECT_EQ(told[0].end, late.at);
}

TEST(Events, WhatBeganOrEndsUnheardIsNotTold) {
  const EventBegin unheard = begin_event();
  EventListener listener;
  end_event(unheard, {.kind = headway_event_help});
  const EventBegin began = begin_event();
  EventListener::stop();
  end_event(began, {.kind = headway_event_help});
  EXPECT_TRUE(EventListener::events(headway_event_help).empty());
}

TEST(Events, ARecorderOfAnotherVersionIsRefused) {
  EventListener listener;
  const HeadwayEventSink* before = event_listener();
  EXPECT_NE(headway_tell_events(headway_events_version + 1, nullptr), 0);
  EXPECT_EQ(event_listener(), before);
}

}  // namespace
}  // namespace headway::base
