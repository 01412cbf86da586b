// Plans: every byte of the range has one owner and one round, whatever the parts are; and who takes
// which way. Seeds as in view_test.cc.
#include "io/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "datatypes/type.h"

namespace headway::io {
namespace {

Part part(int64_t low, int64_t high, int64_t bytes, int64_t runs,
          Hints::Wish wish = Hints::Wish::automatic) {
  Part made;
  made.low = low;
  made.high = high;
  made.bytes = bytes;
  made.runs = runs;
  made.wish = int64_t(wish);
  made.stretch = 1 << 16;
  return made;
}

TEST(Plan, ShortInterleavedRunsGoInTwoPhases) {
  const std::vector<Part> parts = {part(0, 9'500'000, 5'000'000, 10'000),
                                   part(500, 10'000'000, 5'000'000, 10'000)};
  Plan plan;
  plan.decide(parts.data(), 2, 1);
  EXPECT_TRUE(plan.has_two_phases());
  EXPECT_EQ(plan.owners(), 2u);
}

TEST(Plan, LongRunsAndPartsInOrderGoAlone) {
  Plan plan;
  const std::vector<Part> longer = {part(0, 9'500'000, 5'000'000, 10),
                                    part(500'000, 10'000'000, 5'000'000, 10)};
  plan.decide(longer.data(), 2, 1);
  EXPECT_FALSE(plan.has_two_phases());
  const std::vector<Part> apart = {part(0, 5'000'000, 2'500'000, 10'000),
                                   part(5'000'000, 10'000'000, 2'500'000, 10'000)};
  plan.decide(apart.data(), 2, 1);
  EXPECT_FALSE(plan.has_two_phases());
}

// Tables and rounds would be as long as the holes.
TEST(Plan, ARangeThatIsMostlyHolesGoesAlone) {
  const int64_t far = int64_t(1) << 45;
  const std::vector<Part> holes = {part(0, far, 8192, 2, Hints::Wish::always),
                                   part(4096, far + 4096, 8192, 2, Hints::Wish::always)};
  Plan plan;
  plan.decide(holes.data(), 2, 1);
  EXPECT_FALSE(plan.has_two_phases());
  // A short range may have as many as it likes.
  const std::vector<Part> few = {part(0, 1 << 20, 100, 2, Hints::Wish::always),
                                 part(50, 1 << 20, 100, 2, Hints::Wish::always)};
  plan.decide(few.data(), 2, 1);
  EXPECT_TRUE(plan.has_two_phases());
}

TEST(Plan, TablesHaveALimit) {
  std::vector<Part> parts(1000, part(0, int64_t(1) << 40, int64_t(1) << 30, 1 << 24));
  parts[0].owners = 1;
  Plan plan;
  plan.decide(parts.data(), 1000, 1);
  EXPECT_FALSE(plan.has_two_phases());
  parts[0].stretch = 1 << 26;
  parts[0].owners = 1000;
  plan.decide(parts.data(), 1000, 1);
  EXPECT_TRUE(plan.has_two_phases());
}

TEST(Plan, ReadsAndWritesDoNotMeet) {
  std::vector<Part> parts(3);
  EXPECT_TRUE(Plan::agree(parts.data(), 3));
  parts[2].writes = 1;
  EXPECT_FALSE(Plan::agree(parts.data(), 3));
}

TEST(Plan, OneRankThatCannotKeepsAllFromIt) {
  std::vector<Part> parts = {part(0, 1'000'000, 500'000, 1000, Hints::Wish::always),
                             part(500, 1'000'000, 500'000, 1000, Hints::Wish::always)};
  Plan plan;
  plan.decide(parts.data(), 2, 1);
  EXPECT_TRUE(plan.has_two_phases());
  parts[1].alone = 1;
  plan.decide(parts.data(), 2, 1);
  EXPECT_FALSE(plan.has_two_phases());
  parts[1].alone = 0;
  parts[0].wish = int64_t(Hints::Wish::never);
  plan.decide(parts.data(), 2, 1);
  EXPECT_FALSE(plan.has_two_phases());
}

TEST(Plan, NobodyHasData) {
  const std::vector<Part> parts = {part(0, 0, 0, 0, Hints::Wish::always),
                                   part(0, 0, 0, 0, Hints::Wish::always)};
  Plan plan;
  plan.decide(parts.data(), 2, 1);
  EXPECT_FALSE(plan.has_two_phases());
}

TEST(Plan, ManyNodesHaveAFewOwnersEach) {
  std::vector<Part> parts;
  for (int rank = 0; rank < 40; ++rank) {
    parts.push_back(part(rank, 100'000'000 + rank, 1'000'000, 100'000));
  }
  Plan plan;
  plan.decide(parts.data(), 40, 10);
  EXPECT_EQ(plan.owners(), 20u);
  plan.decide(parts.data(), 40, 2);
  EXPECT_EQ(plan.owners(), 40u);
  parts[0].owners = 3;
  plan.decide(parts.data(), 40, 2);
  EXPECT_EQ(plan.owners(), 3u);
}

TEST(Plan, EveryStretchHasOneOwnerAndRound) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const int ranks = int(1 + random() % 9);
    std::vector<Part> parts;
    int64_t low = INT64_MAX, high = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto from = int64_t(random() % 5'000'000);
      const auto to = from + 1 + int64_t(random() % 5'000'000);
      parts.push_back(part(from, to, to - from, 1 + (to - from) / 100, Hints::Wish::always));
      parts.back().owners = int64_t(random() % 12);
      low = std::min(low, from);
      high = std::max(high, to);
    }
    Plan plan;
    plan.decide(parts.data(), ranks, 1);
    ASSERT_TRUE(plan.has_two_phases());
    ASSERT_LE(plan.owners(), uint64_t(ranks));
    const uint64_t last = plan.stretch_at(high - 1);
    EXPECT_EQ(plan.stretch_at(low), 0u);
    EXPECT_EQ(plan.rounds(), last / plan.owners() + 1);
    for (uint64_t stretch = 0; stretch <= last; ++stretch) {
      const uint64_t owner = plan.owner_at(stretch), of = plan.round_at(stretch);
      EXPECT_LT(owner, plan.owners());
      EXPECT_LT(of, plan.rounds());
      EXPECT_EQ(plan.stretch_of(owner, of), stretch);
      EXPECT_EQ(plan.stretch_at(plan.start_of(stretch)), stretch);
      EXPECT_EQ(plan.stretch_at(plan.start_of(stretch + 1) - 1), stretch);
    }
    std::vector<bool> seen(size_t(ranks), false);
    for (uint64_t owner = 0; owner < plan.owners(); ++owner) {
      const int rank = plan.rank_of(owner);
      ASSERT_GE(rank, 0);
      ASSERT_LT(rank, ranks);
      EXPECT_FALSE(seen[size_t(rank)]) << "one rank is two owners";
      seen[size_t(rank)] = true;
      EXPECT_EQ(plan.owner_of(rank), owner);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      if (!seen[size_t(rank)]) {
        EXPECT_EQ(plan.owner_of(rank), plan.owners());
      }
    }
  }
}

TEST(Plan, SlicesAreAllOfAnAccess) {
  using datatypes::Type;
  const Type& byte = datatypes::predefined(datatypes::BasicType::byte);
  Type *inner = nullptr, *type = nullptr;
  ASSERT_EQ(datatypes::make_contiguous(datatypes::Form::large, 700, byte, inner), Outcome::ok);
  ASSERT_EQ(datatypes::make_resized(datatypes::Form::large, *inner, 0, 1000, type), Outcome::ok);
  View* view = View::make(123, byte, *type, native, 1, *type);
  ASSERT_NE(view, nullptr);
  std::vector<Part> parts = {part_of(*view, 50, 500'000, Hints{}, true, false)};
  EXPECT_EQ(parts[0].bytes, 500'000);
  EXPECT_EQ(parts[0].low, 173);
  EXPECT_EQ(parts[0].writes, 1);
  EXPECT_EQ(parts[0].runs, 714);
  parts[0].wish = int64_t(Hints::Wish::always);
  parts[0].stretch = 1 << 16;
  Plan plan;
  plan.decide(parts.data(), 1, 1);
  base::Vec<Slice> slices;
  ASSERT_TRUE(cut(plan, *view, 50, 500'000, slices));
  uint64_t from = 0, before = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    const Slice& slice = slices[i];
    EXPECT_EQ(slice.from, from);
    if (i > 0) {
      EXPECT_GT(slice.stretch, before);
    }
    EXPECT_GT(slice.runs, 0u);
    uint32_t runs = 0;
    (void)view->for_each_run(50 + slice.from, slice.bytes, [&](int64_t at, uint64_t bytes) {
      ++runs;
      EXPECT_EQ(plan.stretch_at(at), slice.stretch);
      EXPECT_EQ(plan.stretch_at(at + int64_t(bytes) - 1), slice.stretch);
      return true;
    });
    EXPECT_EQ(runs, slice.runs) << "the lists of messages have another length";
    from += slice.bytes;
    before = slice.stretch;
  }
  EXPECT_EQ(from, 500'000u);
  EXPECT_GT(slices.size(), 5u);
  view->release();
  type->release();
  inner->release();
}

}  // namespace
}  // namespace headway::io
