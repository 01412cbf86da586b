#include "protocols/ways/order.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

namespace headway::protocols {
namespace {

uint64_t base_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 1;
}

// Takes all that is left, asking now and then for another page; each page must come once.
void take_all(std::mt19937_64& random, uint64_t pages, uint64_t done, int percent) {
  Order* order = Order::make(pages, done);
  ASSERT_NE(order, nullptr);
  std::vector<bool> taken(pages);
  for (uint64_t i = 0; i < done; ++i) taken[i] = true;
  for (uint64_t left = pages - done; left > 0;) {
    uint64_t asked = pages;
    const bool backwards = random() % 2;
    if (random() % 100 < uint64_t(percent)) {
      const uint64_t page = random() % pages;
      order->ask(page, backwards);
      if (!taken[page]) asked = page;
    }
    const auto [first, n] = order->next();
    ASSERT_GT(n, 0u);
    ASSERT_LE(first + n, pages);
    if (asked != pages) {
      EXPECT_EQ(first, asked);
      EXPECT_EQ(n, 1u) << "who waits for a page waits for others, too";
    }
    for (uint64_t i = first; i < first + n; ++i) {
      ASSERT_FALSE(taken[i]) << i;
      ASSERT_FALSE(order->is_taken(i)) << i;
      taken[i] = true;
    }
    ASSERT_TRUE(order->take(first, n));
    EXPECT_FALSE(order->take(first, n)) << "twice";
    left -= n;
  }
  EXPECT_EQ(order->next().pages, 0u);
  Order::drop(order);
}

TEST(Order, EveryPageGoesOnce) {
  std::mt19937_64 random(base_seed());
  for (int round = 0; round < 300; ++round) {
    const uint64_t pages = 1 + random() % (round % 3 ? 300 : 65);
    take_all(random, pages, random() % (pages + 1), int(random() % 100));
  }
  for (const uint64_t pages : {1, 63, 64, 65, 128}) {
    for (uint64_t done = 0; done <= pages; ++done) take_all(random, pages, done, 30);
  }
}

TEST(Order, GoesOnInTheDirectionThatWasAskedFor) {
  Order* order = Order::make(100, 10);
  order->ask(60, false);
  uint64_t expected = 60;
  for (const uint64_t n : {1, 2, 4, 4}) {
    EXPECT_EQ(order->next().first, expected);
    EXPECT_EQ(order->next().pages, n);
    ASSERT_TRUE(order->take(expected, n));
    expected += n;
  }
  EXPECT_TRUE(order->comes_soon(expected + 7, 8));
  EXPECT_FALSE(order->comes_soon(expected + 8, 8));
  EXPECT_FALSE(order->comes_soon(20, 8)) << "behind it";
  order->ask(99, true);
  expected = 100;
  for (const uint64_t n : {1, 2, 4, 4}) {
    EXPECT_EQ(order->next().first, expected - n);
    EXPECT_EQ(order->next().pages, n);
    ASSERT_TRUE(order->take(expected - n, n));
    expected -= n;
  }
  EXPECT_TRUE(order->comes_soon(expected - 8, 8));
  EXPECT_FALSE(order->comes_soon(expected - 9, 8));
  EXPECT_TRUE(order->comes_soon(5, 8)) << "it has gone";
  Order::drop(order);
}

TEST(Order, BeginsBehindWhatHasMoved) {
  Order* order = Order::make(100, 50);
  EXPECT_EQ(order->next().first, 50u);
  EXPECT_TRUE(order->comes_soon(57, 8));
  EXPECT_FALSE(order->comes_soon(58, 8));
  Order::drop(order);
}

TEST(Order, NothingBeyondTheMessage) {
  Order* order = Order::make(64, 0);
  EXPECT_FALSE(order->take(64, 1));
  EXPECT_FALSE(order->take(63, 2));
  EXPECT_FALSE(order->take(~0ull, 2));
  EXPECT_FALSE(order->take(1, ~0ull));
  EXPECT_FALSE(order->take(0, 0));
  EXPECT_TRUE(order->take(0, 64));
  Order::drop(order);
}

}  // namespace
}  // namespace headway::protocols
