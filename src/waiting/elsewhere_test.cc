// Threads that stay off a core for a moment, and may run where they could before.
#include "waiting/elsewhere.h"

#include <gtest/gtest.h>

#include <thread>

namespace headway::waiting {
namespace {

cpu_set_t cores() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

bool are(const cpu_set_t& a) {
  const cpu_set_t b = cores();
  return CPU_EQUAL(&a, &b) != 0;
}

cpu_set_t only(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return one;
}

// In a thread of its own, so that the others keep their cores.
template <class Test>
void with_cores(Test&& test) {
  std::thread([&] {
    const cpu_set_t before = cores();
    if (CPU_COUNT(&before) > 1) test(before);
  }).join();
}

TEST(Elsewhere, LeavesAtOnceAndComesBack) {
  with_cores([](const cpu_set_t& before) {
    for (int i = 0; i < 20; ++i) {
      const int core = sched_getcpu();
      {
        Elsewhere elsewhere;
        ASSERT_TRUE(elsewhere.leave(uint32_t(core)));
        EXPECT_NE(sched_getcpu(), core);
        cpu_set_t others = before;
        CPU_CLR(core, &others);
        EXPECT_TRUE(are(others));
        EXPECT_FALSE(elsewhere.leave(uint32_t(sched_getcpu())));  // one at a time
      }
      EXPECT_TRUE(are(before));
    }
  });
}

TEST(Elsewhere, WhoIsBoundStays) {
  std::thread([] {
    const int core = sched_getcpu();
    const cpu_set_t one = only(core);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    {
      Elsewhere elsewhere;
      EXPECT_FALSE(elsewhere.leave(uint32_t(core)));
      EXPECT_FALSE(elsewhere.leave(uint32_t(core) + 1));
      EXPECT_FALSE(elsewhere.leave(~0u));
      EXPECT_TRUE(are(one));
    }
    EXPECT_TRUE(are(one));
  }).join();
}

// A debugger, a batch system or the program itself.
TEST(Elsewhere, WhoeverChoosesMeanwhileHasTheLastWord) {
  with_cores([](const cpu_set_t& before) {
    const int core = sched_getcpu();
    const cpu_set_t chosen = only(core);
    {
      Elsewhere elsewhere;
      ASSERT_TRUE(elsewhere.leave(uint32_t(core)));
      ASSERT_EQ(sched_setaffinity(0, sizeof chosen, &chosen), 0);
    }
    EXPECT_TRUE(are(chosen));
    EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  });
}

}  // namespace
}  // namespace headway::waiting
