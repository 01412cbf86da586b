#include "protocols/profit.h"

#include <gtest/gtest.h>

namespace headway::protocols {
namespace {

constexpr uint64_t cost = 20'000, vain = 10'000, gain = 500'000;

TEST(Profit, ABufferThatWinsIsAlwaysReleased) {
  Profit profit;
  const uint32_t place = Profit::place_of(&profit, 65536);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(profit.is_worth(place)) << i;
    profit.learn(place, gain, cost);
  }
  EXPECT_EQ(profit.given_up, 0u);
}

TEST(Profit, ABufferThatWinsNothingIsTriedEverMoreSeldom) {
  Profit profit;
  const uint32_t place = Profit::place_of(&profit, 65536);
  int released = 0, first_ten = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (!profit.is_worth(place)) continue;
    ++released;
    first_ten += i < 10;
    profit.learn(place, vain, cost);
  }
  EXPECT_LE(first_ten, 3);
  EXPECT_GT(released, 5) << "it is never tried again";
  EXPECT_LT(released, 30);
  EXPECT_EQ(profit.given_up, 1u);
}

TEST(Profit, ABufferThatBeginsToWinIsReleasedAgain) {
  Profit profit;
  const uint32_t place = Profit::place_of(&profit, 65536);
  for (int i = 0; i < 3; ++i) profit.learn(place, vain, cost);
  ASSERT_FALSE(profit.is_worth(place));
  int messages = 1;
  while (!profit.is_worth(place)) ASSERT_LT(++messages, 100);
  profit.learn(place, gain, cost);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(profit.is_worth(place));
}

TEST(Profit, OtherBuffersAreNotMeant) {
  Profit profit;
  char buffers[2];
  const uint32_t one = Profit::place_of(buffers, 65536);
  const uint32_t other = Profit::place_of(buffers, 1 << 20);
  ASSERT_NE(one, other);
  for (int i = 0; i < 3; ++i) profit.learn(one, vain, cost);
  EXPECT_FALSE(profit.is_worth(one));
  EXPECT_TRUE(profit.is_worth(other));
}

}  // namespace
}  // namespace headway::protocols
