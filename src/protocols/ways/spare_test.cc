// One engine whose link is slow: who waits gives it what it needs now, so that an answer leaves at
// once; who sleeps, goes on or does not wait gives it more, and all where nobody would go on or
// nothing comes the other way.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "protocols/ways/spare_test_link.h"

namespace headway::protocols {
namespace {

using Spare = OneSlowLink;

TEST_F(Spare, AnAnswerIsNotBehindAMegabyte) {
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared();
  look(progress::Driver::waiting);
  EXPECT_GE(link_.data, watched);
  EXPECT_LT(link_.data, watched + short_bytes);
  is_announced();
  // What the far end has got is made good. Later more is on the way, but not half of what has gone.
  for (uint64_t round = 0; link_.data < bytes; ++round) {
    ASSERT_LT(round, bytes / 20'000);
    link_.on_the_way -= std::min(20'000 + 7 * round, uint64_t(link_.on_the_way));
    look(progress::Driver::waiting);
    ASSERT_LE(link_.on_the_way, std::max(watched, link_.data / 2) + short_bytes);
  }
}

TEST_F(Spare, WhoHasWaitedGivesAllIfNobodyGoesOn) {
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared();
  EXPECT_LT(link_.data, bytes);
  engine_.end_wait();
  EXPECT_EQ(link_.data, bytes);
}

TEST_F(Spare, WhoIsAboutToSleepToo) {
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared();
  EXPECT_LT(link_.data, bytes);
  engine_.hand_on();
  EXPECT_EQ(link_.data, bytes);
}

TEST_F(Spare, WhoDoesNotWaitToo) {
  engine_.handoff().driver = progress::Driver::passing;
  is_cleared();
  EXPECT_EQ(link_.data, bytes);
}

TEST_F(Spare, ALinkThatIsFastOrNotKnownGetsAll) {
  link_.bytes_a_us = 0;
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared();
  EXPECT_EQ(link_.data, bytes);
}

TEST_F(Spare, AFastLinkGetsAll) {
  link_.bytes_a_us = 10'000;
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared();
  EXPECT_EQ(link_.data, bytes);
  EXPECT_EQ(engine_.counters().spared, 0u);
}

TEST_F(Spare, WhoHadNoCoreMeanwhileIsNoThreadThatIsBackAtOnce) {
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared();
  ASSERT_LT(link_.data, bytes);
  usleep(1100);
  look(progress::Driver::waiting);
  EXPECT_EQ(link_.data, bytes);
}

TEST_F(Spare, WhatIsKeptBackIsCountedOnceAPause) {
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared();
  look(progress::Driver::waiting);
  EXPECT_EQ(engine_.counters().spared, 1u);
  link_.on_the_way = 0;
  look(progress::Driver::waiting);
  EXPECT_EQ(engine_.counters().spared, 2u);
  engine_.end_wait();
}

// A window of messages: the second was asked for, so nothing is spared for its sake. At the end the
// answer to the next window is due.
TEST_F(Spare, OfARowOnlyTheLastIsSpared) {
  constexpr uint64_t at_its_end = 256 << 10;
  Request* const first = send_;
  std::vector<char> other(bytes, 'p');
  send_ = start(RequestKind::send, other);
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared(first);
  EXPECT_LT(link_.data, watched + short_bytes) << "until the second is asked for";
  is_cleared();
  EXPECT_EQ(link_.data, bytes) << "all of the first, and nothing behind so much";
  EXPECT_TRUE(first->done.load());
  link_.on_the_way = 0;
  look(progress::Driver::waiting);
  EXPECT_GE(link_.data, bytes + at_its_end);
  EXPECT_LT(link_.data, bytes + at_its_end + frame_bytes);
  engine_.end_wait();
  EXPECT_EQ(link_.data, 2 * bytes);
  link_.data -= bytes;
  engine_.give_request(first);
  // Whatever comes behind a row is one message again.
  start_next();
  is_cleared();
  EXPECT_LT(link_.data, watched + short_bytes);
  engine_.end_wait();
}

// Of so many messages in one direction the next one is not spared.
class SpareOneWay : public Spare {
 protected:
  static constexpr int one_way = 8;
  // All of a message leaves while somebody waits for it. Bytes that went at once.
  uint64_t leave() {
    engine_.handoff().driver = progress::Driver::waiting;
    is_cleared();
    const uint64_t at_once = link_.data;
    for (int i = 0; i < 1000 && link_.data < bytes; ++i) {
      link_.on_the_way = 0;
      look(progress::Driver::waiting);
    }
    engine_.end_wait();
    return at_once;
  }
};

TEST_F(SpareOneWay, NothingComesAndAllIsGiven) {
  for (int i = 0; i < one_way; ++i) {
    ASSERT_LT(leave(), bytes) << i;
    start_next();
  }
  EXPECT_EQ(leave(), bytes);
  start_next();
  EXPECT_EQ(leave(), bytes);
  // What is asked for when all has left meets nothing.
  link_.on_the_way = 0;
  is_announced();
  start_next();
  EXPECT_EQ(leave(), bytes);
  // That message is still on its way in: from now on they meet.
  start_next();
  EXPECT_LT(leave(), bytes);
}

TEST_F(SpareOneWay, AnAnswerBehindAMessageEndsIt) {
  for (int i = 0; i < one_way; ++i) {
    ASSERT_LT(leave(), bytes) << i;
    start_next();
  }
  EXPECT_EQ(leave(), bytes);
  ASSERT_GT(link_.on_the_way, bytes / 2);
  is_announced();
  start_next();
  EXPECT_LT(leave(), bytes);
}

TEST_F(SpareOneWay, AMessageThatCameMeanwhileEndsIt) {
  for (int i = 0; i < one_way - 1; ++i) {
    ASSERT_LT(leave(), bytes) << i;
    start_next();
  }
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared();
  ASSERT_LT(link_.data, bytes);
  is_announced();
  has_come();
  engine_.end_wait();
  start_next();
  EXPECT_LT(leave(), bytes);
}

TEST_F(SpareOneWay, MessagesThatMeetStaySpared) {
  is_announced();
  for (int i = 0; i < 3 * one_way; ++i) {
    ASSERT_LT(leave(), bytes) << i;
    start_next();
  }
  ASSERT_LT(leave(), bytes);
}

class SpareSwitchedOff : public Spare {
 protected:
  SpareSwitchedOff() : Spare(false, Wish::off) {}
};

TEST_F(SpareSwitchedOff, ASlowLinkGetsAll) {
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared();
  EXPECT_EQ(link_.data, bytes);
}

class SpareAlways : public Spare {
 protected:
  SpareAlways() : Spare(false, Wish::always) {}
};

TEST_F(SpareAlways, AFastLinkAndOneThatIsNotKnownAreSpared) {
  engine_.handoff().driver = progress::Driver::waiting;
  for (const uint64_t rate : {10'000, 0}) {
    link_.bytes_a_us = rate;
    link_.on_the_way = 0;
    const uint64_t before = link_.data;
    before ? look(progress::Driver::waiting) : is_cleared();
    EXPECT_GT(link_.data, before);
    EXPECT_LT(link_.data, before + bytes / 3);
  }
  engine_.end_wait();
}

class SpareBesideAThread : public Spare {
 protected:
  SpareBesideAThread() : Spare(true) {}
  void TearDown() override {
    // The far end gets what is on its way, and nobody enters MPI.
    engine_.handoff().leave();
    for (int i = 0; i < 5000 && link_.data < bytes; ++i) {
      usleep(1000);
      link_.on_the_way = 0;
    }
    engine_.handoff().enter();
    Spare::TearDown();
  }
};

TEST_F(SpareBesideAThread, WhoHasWaitedLeavesTheRestToIt) {
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared();
  EXPECT_LT(link_.data, watched + short_bytes);
  engine_.end_wait();
  EXPECT_GE(link_.data, alone);
  EXPECT_LT(link_.data, alone + frame_bytes);
}

TEST_F(SpareBesideAThread, WhoDoesNotWaitToo) {
  engine_.handoff().driver = progress::Driver::passing;
  is_cleared();
  EXPECT_GE(link_.data, alone);
  EXPECT_LT(link_.data, alone + frame_bytes);
}

}  // namespace
}  // namespace headway::protocols
