// Ranges that come and go at random, against a list that is looked through.
#include "base/intervals.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <random>
#include <vector>

namespace headway::base {
namespace {

const char* at(uintptr_t address) { return reinterpret_cast<const char*>(address); }

struct Range {
  uintptr_t from, to;
  uint32_t owner;
};

std::vector<uint32_t> met(const Intervals& intervals, uintptr_t from, uintptr_t to) {
  std::vector<uint32_t> found;
  (void)intervals.visit(at(from), at(to), [&](uint32_t number, uint32_t) {
    found.push_back(number);
    return true;
  });
  std::sort(found.begin(), found.end());
  return found;
}

TEST(Intervals, AreTheSameAsAList) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    // Few addresses: many ranges begin or end at the same one, or are empty.
    const uintptr_t space = seed % 2 ? 60 : 100'000;
    const auto any = [&](uintptr_t n) { return uintptr_t(random() % n); };
    Intervals intervals;
    std::map<uint32_t, Range> model;
    for (int step = 0; step < 3000; ++step) {
      if (any(3) != 0 || model.empty()) {
        const uintptr_t from = 1 + any(space), to = from + any(any(4) ? 20 : space);
        const uint32_t number = intervals.add(at(from), at(to), uint32_t(step));
        ASSERT_NE(number, 0u);
        ASSERT_TRUE(model.emplace(number, Range{from, to, uint32_t(step)}).second);
      } else {
        auto gone = model.begin();
        std::advance(gone, ptrdiff_t(any(model.size())));
        intervals.remove(gone->first);
        model.erase(gone);
      }
      ASSERT_EQ(intervals.size(), model.size());
      const uintptr_t from = any(space), to = from + any(30);
      std::vector<uint32_t> wanted;
      for (const auto& [number, range] : model) {
        if (range.from < range.to && from < to && range.from < to && from < range.to) {
          wanted.push_back(number);
        }
      }
      ASSERT_EQ(met(intervals, from, to), wanted) << "step " << step;
    }
    intervals.clear();
    EXPECT_TRUE(met(intervals, 0, space * 2).empty());
  }
}

TEST(Intervals, AVisitEndsWhereItIsTold) {
  Intervals intervals;
  for (uintptr_t i = 0; i < 10; ++i) {
    ASSERT_NE(intervals.add(at(100 + i), at(200), uint32_t(i)), 0u);
  }
  std::vector<uint32_t> owners;
  EXPECT_FALSE(intervals.visit(at(150), at(151), [&](uint32_t, uint32_t owner) {
    owners.push_back(owner);
    return owners.size() < 3;
  }));
  EXPECT_EQ(owners, (std::vector<uint32_t>{0, 1, 2}));  // by where they begin
}

// Ranges in the order of their addresses, as a program's arrays are, and one that holds them all:
// a look must not walk through them. Counted by the time that twice as many take.
TEST(Intervals, OneHitAmongManyIsFoundAtOnce) {
  Intervals intervals;
  constexpr uintptr_t many = 200'000;
  for (uintptr_t i = 0; i < many; ++i) {
    ASSERT_NE(intervals.add(at(1000 + 10 * i), at(1005 + 10 * i), uint32_t(i)), 0u);
  }
  const uint32_t whole = intervals.add(at(1), at(1000 + 10 * many), 7);
  ASSERT_NE(whole, 0u);
  // Between two of them only the one that holds all is met. A walk would take minutes here.
  for (uintptr_t i = 0; i < many; ++i) {
    ASSERT_EQ(met(intervals, 1006 + 10 * i, 1009 + 10 * i), std::vector<uint32_t>{whole});
  }
}

#if defined(HEADWAY_DEBUG)
TEST(IntervalsDeathTest, WhatIsRemovedStandsInIt) {
  Intervals intervals;
  const uint32_t first = intervals.add(at(100), at(200), 1);
  ASSERT_NE(intervals.add(at(300), at(400), 2), 0u);
  intervals.remove(first);
  EXPECT_DEATH(intervals.remove(first), "does not hold");
  EXPECT_DEATH(intervals.remove(77), "does not hold");
}
#endif

}  // namespace
}  // namespace headway::base
