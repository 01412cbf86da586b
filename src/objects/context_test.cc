// Contexts: what two communicators that one process may know never share.
#include "objects/context.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "objects/info.h"
#include "objects/team.h"

namespace headway::objects {
namespace {

TEST(Context, RanksNeverMakeTheSame) {
  std::set<uint64_t> seen = {make_context(5, world_number), make_context(5, self_number)};
  for (const uint32_t size : {1u, 2u, 7u}) {
    for (uint32_t rank = 0; rank < size; ++rank) {
      for (uint64_t before = 0; before < 50; ++before) {
        const uint64_t made = make_context(size, context_number(before, rank, size));
        EXPECT_TRUE(is_context(made));
        EXPECT_TRUE(seen.insert(made).second) << size << " ranks, rank " << rank;
        EXPECT_TRUE(is_context(made | late_context));
        EXPECT_FALSE(is_context(made | creation_context));
        EXPECT_FALSE(is_context(made + 1));
      }
    }
  }
}

// Ranks of two jobs that have made equally many communicators, and then meet.
TEST(Context, JobsNeverMakeTheSame) {
  const uint32_t one = job_number("kvs_4711_0"), other = job_number("kvs_4712_0");
  ASSERT_NE(one, other);
  std::set<uint64_t> seen;
  for (const uint32_t job : {one, other}) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      for (uint64_t before = 0; before < 100; ++before) {
        EXPECT_TRUE(seen.insert(make_context(job, context_number(before, rank, 4))).second);
      }
    }
  }
  EXPECT_NE(make_context(one, world_number), make_context(other, world_number));
}

// The largest of each part leaves the others as they are.
TEST(Context, PartsDoNotMeet) {
  constexpr uint32_t last_job = (1u << context_job_bits) - 1;
  constexpr uint64_t last = (uint64_t(1) << context_number_bits) - 1;
  EXPECT_TRUE(is_context_number(last));
  EXPECT_FALSE(is_context_number(last + 1));
  EXPECT_EQ(make_context(last_job, last), late_context - 2);
  EXPECT_EQ(make_context(last_job, last) & make_context(0, last), make_context(0, last));
  EXPECT_EQ(make_context(last_job, 1) ^ make_context(0, 1),
            make_context(last_job, last) ^ make_context(0, last));
  EXPECT_EQ(context_job(make_context(last_job, last)), last_job);
  EXPECT_EQ(context_job(make_context(0, last) | late_context | 1), 0u);
  // A hundred thousand ranks can make 700 million each.
  EXPECT_TRUE(is_context_number(context_number(700'000'000, 99'999, 100'000)));
}

// Of an inter-communicator: what is sent point to point, what its collectives send to the other
// side, and what to their own; beside what is sent while others are made on it.
TEST(Context, ThreeOfAnInterCommunicatorFromOneNumber) {
  std::set<uint64_t> seen;
  for (const uint64_t late : {uint64_t(0), late_context}) {
    for (const uint64_t number : {first_number, first_number + 1}) {
      const uint64_t context = late | make_context(7, number);
      const uint64_t bridge = context + 1, own_side = bridge | own_side_context;
      for (const uint64_t one : {context, bridge, own_side}) {
        EXPECT_TRUE(seen.insert(one).second);
        EXPECT_EQ(comm_context(one), context);
        EXPECT_EQ(is_context(one), one == context);
      }
      for (const uint64_t apart :
           {creation_context, creation_context | 1, creation_context | from_group_context}) {
        EXPECT_TRUE(seen.insert(context ^ apart).second);
        EXPECT_NE(comm_context(context ^ apart), context);
      }
    }
  }
}

TEST(Context, JobsAreSpread) {
  std::set<uint32_t> numbers;
  for (int i = 0; i < 1000; ++i) numbers.insert(job_number(("job." + std::to_string(i)).c_str()));
  // Of 1000 values out of 16384, 970 are expected to differ.
  EXPECT_GT(numbers.size(), 900u);
}

#if defined(HEADWAY_DEBUG)
TEST(TeamDeathTest, OwnPlaceIsInIt) {
  Group group;
  group.size = group.self = 3;
  EXPECT_DEATH((void)Team(group), "does not hold");
}

TEST(InfoDeathTest, KeysAreNotCut) {
  Info* info = Info::make();
  ASSERT_NE(info, nullptr);
  const std::string longer(sizeof InfoEntry::key, 'k');
  EXPECT_TRUE(info->set(longer.c_str() + 1, "value"));
  EXPECT_DEATH((void)info->set(longer.c_str(), "value"), "does not hold");
  info->release();
}

TEST(ContextDeathTest, PartsAreChecked) {
  EXPECT_DEATH((void)make_context(1u << context_job_bits, 1), "does not hold");
  EXPECT_DEATH((void)make_context(1, uint64_t(1) << context_number_bits), "does not hold");
}
#endif

}  // namespace
}  // namespace headway::objects
