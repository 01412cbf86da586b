// Looking for a moment more before a yield: where messages come in that moment, and where they do
// not.
#include "waiting/linger.h"

#include <gtest/gtest.h>

namespace headway::waiting {
namespace {

// Waits for messages that come so long after the first look; looks are 50 ns apart, a yield is of
// 500. Yields in so many waits.
struct Loop {
  Linger linger;
  uint64_t now = 1, looked_for = 0;

  int yields(int waits, uint64_t comes_after) {
    int n = 0;
    for (int i = 0; i < waits; ++i) {
      for (const uint64_t comes = now + comes_after; now < comes;) {
        if (linger.goes_on(now)) {
          now += 50;
          looked_for += 50;
        } else {
          ++n;
          now += 500;
        }
      }
      linger.note_moved();
    }
    return n;
  }
};

TEST(Linger, WhatComesAtOnceNeedsNoYields) {
  Loop loop;
  EXPECT_LE(loop.yields(20 * Linger::try_every, 200), 2 * int(Linger::try_every));
  EXPECT_EQ(loop.yields(1000, 200), 0);
}

TEST(Linger, WhatComesLateIsSeldomLookedFor) {
  Loop loop;
  EXPECT_GE(loop.yields(1600, 500), 1500);
  EXPECT_LE(loop.looked_for, 100 * (Linger::longest_ns + 50));
}

TEST(Linger, ItLearnsAnewWhenTheyChangePlaces) {
  Loop loop;
  for (int round = 0; round < 3; ++round) {
    loop.yields(400, 200);
    EXPECT_EQ(loop.yields(100, 200), 0);
    loop.yields(400, 2000);
    loop.looked_for = 0;
    const int yields = loop.yields(400, 2000);
    EXPECT_LE(loop.looked_for,
              (uint64_t(yields) / Linger::try_every + 1) * (Linger::longest_ns + 50));
  }
}

TEST(Linger, ItEndsWhereTheClockLeaps) {
  Linger linger;
  uint64_t now = 1;
  while (!linger.goes_on(now)) ++now;
  EXPECT_FALSE(linger.goes_on(now + 1'000'000));
  EXPECT_FALSE(linger.goes_on(now + 1'000'001));
}

}  // namespace
}  // namespace headway::waiting
