#include "protocols/release/profit.h"
#include "protocols/release/costs.h"

#include <gtest/gtest.h>

namespace headway::protocols {
namespace {

constexpr uintptr_t here = 0x401000, there = 0x402000;
constexpr uint64_t size = 65536;
constexpr uint64_t us = 1000;

// The program computed; it read all of it at once; its next call waited; it made many system calls;
// the data were nearly there.
constexpr Released won{.closed_ns = 500 * us, .closing_ns = 20 * us};
constexpr Released read_at_once{
    .closed_ns = 500 * us, .touched_ns = 420 * us, .closing_ns = 20 * us, .touches = 5};
constexpr Released waited{.closed_ns = 500 * us, .inside_ns = 490 * us, .closing_ns = 20 * us};
constexpr Released trapped{.closed_ns = 500 * us, .closing_ns = 20 * us, .traps = 125};
constexpr Released short_one{.closed_ns = 35 * us, .closing_ns = 20 * us};

class ProfitTest : public testing::Test {
 protected:
  // Whether a message there was released; then it went like that.
  bool message(uintptr_t site, const void* buffer, const Released& how) {
    uint32_t token = 0;
    if (!profit_.is_worth(site, buffer, size, token)) return false;
    EXPECT_NE(token, 0u);
    Released release = how;
    if (profit_.settles(token)) {
      release.settles = true;
      release.traps = release.traps ? 1 : 0;
      ++settled_;
    }
    profit_.learn(token, release);
    return true;
  }
  int released(int messages, uintptr_t site, const void* buffer, const Released& how) {
    int count = 0;
    for (int i = 0; i < messages; ++i) count += message(site, buffer, how);
    return count;
  }
  const void* buffer(int i) const { return buffers_ + i * 64; }

  Profit profit_;
  int settled_ = 0;
  char buffers_[64 * 2000];
};

TEST_F(ProfitTest, WhereItWinsEveryMessageIsReleased) {
  EXPECT_EQ(released(1000, here, buffer(0), won), 1000);
  EXPECT_EQ(profit_.all_given_up(), 0u);
  EXPECT_EQ(settled_, 0);
}

TEST_F(ProfitTest, WhatWinsNothingIsTriedEverMoreSeldom) {
  EXPECT_LE(released(10, here, buffer(0), read_at_once), 3);
  const int later = released(10'000, here, buffer(0), read_at_once);
  EXPECT_GT(later, 5) << "it is never tried again";
  EXPECT_LT(later, 30);
  EXPECT_EQ(profit_.all_given_up(), 1u);
}

// A list of thousands of receives whose pages are all closed at once: each of them is closed long,
// and what they hide together is less than what closing them costs.
TEST_F(ProfitTest, WhatManyHideTogetherCountsOnce) {
  constexpr Released one_of_many{
      .closed_ns = 100'000 * us, .share_ns = 30 * us, .closing_ns = 15 * us};
  EXPECT_LE(released(10, here, buffer(0), one_of_many), 3);
  // On a slow link each has its share.
  constexpr Released slow{
      .closed_ns = 100'000 * us, .share_ns = 6'000 * us, .closing_ns = 150 * us};
  EXPECT_EQ(released(100, there, buffer(1), slow), 100);
}

// Blocks of a Waitall from seven neighbours over a slow link, used one after the other: what the
// message thread spends and whoever is trapped is there once for all of them, too.
TEST_F(ProfitTest, WhatManyCostTogetherCountsOnce) {
  constexpr Released one_of_seven{.closed_ns = 14'000 * us,
                                  .touched_ns = 500 * us,
                                  .share_ns = 2'000 * us,
                                  .closing_ns = 150 * us,
                                  .moving_ns = 2'500 * us,
                                  .traps = 100,
                                  .touches = 2};
  EXPECT_EQ(released(100, there, buffer(0), one_of_seven), 100);
}

TEST_F(ProfitTest, TheReasonIsWhatCostMost) {
  released(20, here, buffer(0), read_at_once);
  EXPECT_EQ(profit_.given_up[Profit::touched_at_once], 1u);
  released(20, there, buffer(1), waited);
  EXPECT_EQ(profit_.given_up[Profit::next_call], 1u);
  released(20, there + 1, buffer(2), short_one);
  EXPECT_EQ(profit_.given_up[Profit::closing], 1u);
  EXPECT_EQ(profit_.all_given_up(), 3u);
  Profit fresh;  // each release with all its traps, as if they had come from elsewhere
  uint32_t token = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(fresh.is_worth(here, buffer(0), size, token));
    fresh.learn(token, trapped);
  }
  EXPECT_EQ(fresh.given_up[Profit::traps], 1u);
}

// What is counted as hidden between touches is the delay of whoever is woken.
TEST_F(ProfitTest, TouchesCost) {
  const Released many{
      .closed_ns = 500 * us, .touched_ns = 250 * us, .closing_ns = 20 * us, .touches = 16};
  EXPECT_LE(released(20, here, buffer(0), many), 3);
  const Released few{
      .closed_ns = 500 * us, .touched_ns = 250 * us, .closing_ns = 20 * us, .touches = 4};
  EXPECT_EQ(released(20, here, buffer(1), few), 20);
}

// A reader that is woken for the first page, and runs when the last one has come: the message
// thread was on its core.
TEST_F(ProfitTest, WhatTheMessageThreadTakesIsNotWon) {
  const Released read{.closed_ns = 4'500 * us,
                      .touched_ns = 4'100 * us,
                      .closing_ns = 20 * us,
                      .moving_ns = 340 * us,
                      .touches = 1};
  EXPECT_LE(released(20, here, buffer(0), read), 3);
  const Released computed{.closed_ns = 4'500 * us, .closing_ns = 20 * us, .moving_ns = 340 * us};
  EXPECT_EQ(released(20, here, buffer(1), computed), 20);
}

// Within a node: the early rank's own thread copies, 1.7 us a page, in the waits that follow.
TEST_F(ProfitTest, WhatIsPutOffIsNotWon) {
  const Released put_off{.closed_ns = 1'204 * us, .closing_ns = 81 * us, .moving_ns = 1'100 * us};
  EXPECT_LE(released(20, here, buffer(0), put_off), 3);
  EXPECT_EQ(profit_.given_up[Profit::moving], 1u);
  const Released computed{.closed_ns = 2'204 * us, .closing_ns = 81 * us, .moving_ns = 1'100 * us};
  EXPECT_EQ(released(20, here, buffer(1), computed), 20);
}

TEST(CostsTest, ATimeSliceOfSomebodyElseIsNoWork) {
  Costs costs;
  costs.note_work(40 * us, 64 << 10);
  EXPECT_EQ(costs.working_ns(), 40 * us);
  costs.note_work(4'000 * us, 64 << 10);
  EXPECT_LT(costs.working_ns(), 250 * us);
  costs.note_work(1'000 * us, 4 << 20);  // many pages take long
  EXPECT_GT(costs.working_ns(), 1'000 * us);
}

TEST(CostsTest, PagesAreLearnedFromManyAndNotFromOneAccident) {
  Costs costs;
  const uint64_t first = costs.page_ns();
  costs.note_closing(10, 10'000 * us);  // too few
  EXPECT_EQ(costs.page_ns(), first);
  costs.note_closing(100, 10'000 * us);
  EXPECT_LE(costs.page_ns(), first + first / 8);
  for (int i = 0; i < 50; ++i) costs.note_closing(100, 100 * 100);  // 100 ns a page
  EXPECT_NEAR(double(costs.page_ns()), 400, 10);
}

// A slave that waits long for its slice, and computes while the rest of it comes.
TEST_F(ProfitTest, ALongWaitDoesNotHideWhatIsWonBehindIt) {
  const Released slice{
      .closed_ns = 600'000 * us, .touched_ns = 580'000 * us, .closing_ns = 200 * us, .touches = 30};
  EXPECT_EQ(released(20, here, buffer(0), slice), 20);
  const Released nothing{
      .closed_ns = 600'000 * us, .touched_ns = 598'000 * us, .closing_ns = 200 * us, .touches = 30};
  EXPECT_LE(released(20, here, buffer(1), nothing), 3);
}

TEST_F(ProfitTest, WhatBeginsToWinIsReleasedAgain) {
  ASSERT_EQ(released(10, here, buffer(0), waited), 3);
  int messages = 1;
  while (!message(here, buffer(0), won)) ASSERT_LT(++messages, 100);
  EXPECT_EQ(released(100, here, buffer(0), won), 100);
}

TEST_F(ProfitTest, OneLuckyTryIsNotTrustedForLong) {
  released(10, here, buffer(0), waited);
  while (!message(here, buffer(0), won)) {
  }
  EXPECT_EQ(released(20, here, buffer(0), waited), 1);
}

TEST_F(ProfitTest, OtherBuffersAndSizesOfASiteAreNotMeant) {
  ASSERT_EQ(released(10, here, buffer(0), waited), 3);
  EXPECT_EQ(released(10, here, buffer(1), won), 10);
  uint32_t token = 0;
  EXPECT_TRUE(profit_.is_worth(here, buffer(0), 16 * size, token));
}

TEST_F(ProfitTest, AnotherSiteWithTheSameBufferIsTriedOnItsOwn) {
  ASSERT_EQ(released(10, here, buffer(0), waited), 3);
  EXPECT_EQ(released(10, there, buffer(0), won), 10);
  EXPECT_EQ(released(10, here, buffer(0), waited), 0) << "and tells nothing of the first";
}

TEST_F(ProfitTest, ANewBufferAtABadSiteIsSeldomTried) {
  int tried = 0;
  for (int i = 0; i < 1000; ++i) tried += message(here, buffer(i), waited);
  EXPECT_GT(tried, 8) << "it is never tried again";
  EXPECT_LT(tried, 20);
  int elsewhere = 0;
  for (int i = 0; i < 5; ++i) elsewhere += message(there, buffer(i), waited);
  EXPECT_EQ(elsewhere, 5) << "an unknown site is tried";
}

TEST_F(ProfitTest, ASiteThatBeginsToWinTakesNewBuffersAgain) {
  for (int i = 0; i < 100; ++i) message(here, buffer(i), waited);
  int messages = 0;
  while (!message(here, buffer(200 + messages), won)) ASSERT_LT(++messages, 200);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(message(here, buffer(1000 + i), won));
}

TEST_F(ProfitTest, ASiteWhoseTrapsCostOverFivePercentSettles) {
  const Released cheap{.closed_ns = 500 * us, .closing_ns = 20 * us, .traps = 5};
  EXPECT_EQ(released(100, here, buffer(0), cheap), 100);
  EXPECT_EQ(settled_, 0) << "20 of 500 us";
  const Released dear{.closed_ns = 500 * us, .closing_ns = 20 * us, .traps = 8};
  EXPECT_EQ(released(100, here, buffer(0), dear), 100) << "it wins all the same";
  EXPECT_GT(settled_, 90) << "32 of 500 us";
  EXPECT_LT(settled_, 99) << "it is never tried without";
  EXPECT_EQ(profit_.sites_settled, 1u);
  settled_ = 0;
  released(100, there, buffer(0), cheap);
  EXPECT_EQ(settled_, 0);
}

TEST_F(ProfitTest, ASiteWhoseTrapsEndDoesNotSettleForEver) {
  released(10, here, buffer(0), trapped);
  ASSERT_GT(settled_, 0);
  released(40, here, buffer(0), won);
  settled_ = 0;
  released(100, here, buffer(0), won);
  EXPECT_EQ(settled_, 0);
}

TEST_F(ProfitTest, WhereABufferIsWaitedFor) {
  EXPECT_EQ(profit_.last_wait(buffer(0)), 0u);
  profit_.note_wait(buffer(0), here);
  profit_.note_wait(buffer(1), there);
  EXPECT_EQ(profit_.last_wait(buffer(0)), here);
  profit_.note_wait(buffer(0), there);
  EXPECT_EQ(profit_.last_wait(buffer(0)), there);
}

TEST_F(ProfitTest, ALessonForSomethingForgottenIsDropped) {
  uint32_t token = 0;
  ASSERT_TRUE(profit_.is_worth(here, buffer(0), size, token));
  for (int i = 0; i < 20'000; ++i) message(there + uintptr_t(i), buffer(i % 2000), won);
  for (int i = 0; i < 10; ++i) profit_.learn(token, waited);
  EXPECT_EQ(profit_.all_given_up(), 0u);
}

}  // namespace
}  // namespace headway::protocols
