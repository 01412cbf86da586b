// What a recorder is told of the message thread: the stretches in which it moved something.
#include "base/events_test_listener.h"
#include "progress/handoff_test_rank.h"

namespace headway::progress {
namespace {

using base::EventListener;

TEST(HandoffHelp, WhatTheThreadMovesIsTold) {
  EventListener listener;
  constexpr uint64_t rounds = 3;
  uint64_t useful = 0;
  {
    Rank rank(true);
    rank.handoff.enter();
    rank.handoff.pending = 1;
    rank.handoff.leave();
    for (uint64_t i = 1; i <= rounds; ++i) {
      rank.mail(i);
      ASSERT_TRUE(reaches(rank.taken_mail, i));
      usleep(5000);  // far more than what is told as one
    }
    rank.handoff.enter();
    rank.handoff.pending = 0;
    rank.handoff.leave();
    useful = rank.handoff.counters.thread_useful;
  }
  const auto helps = EventListener::events(headway_event_help);
  EXPECT_EQ(helps.size(), useful);
  EXPECT_EQ(helps.size(), rounds);
  uint64_t before = 0;
  for (const HeadwayEvent& help : helps) {
    EXPECT_GT(help.begin, before) << "two at once";
    EXPECT_LT(help.begin, help.end);
    before = help.end;
  }
}

TEST(HandoffHelp, AThreadThatMovesNothingHasNotHelped) {
  EventListener listener;
  {
    Rank rank(true);
    rank.handoff.enter();
    rank.handoff.pending = 1;
    rank.handoff.leave();
    rank.handoff.bell().ring();
    usleep(20'000);
    rank.handoff.enter();
    rank.handoff.pending = 0;
    rank.handoff.leave();
  }
  EXPECT_TRUE(EventListener::events(headway_event_help).empty());
}

}  // namespace
}  // namespace headway::progress
