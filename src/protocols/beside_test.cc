#include "protocols/beside.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace headway::protocols {
namespace {

constexpr Mark other = Mark(16);  // of a table that is made here alone

struct Short {
  uint32_t number = 7;
  bool flag : 1 = false;
};
struct Long {
  uint64_t numbers[13] = {};
};

class TwoTables {
 public:
  base::Pool<Request> pool;
  Beside<Short, other> shorts{pool};
  Beside<Long, Mark::transfer> longs{pool};
};

// Requests come and go while the pool grows; each finds in its rows what it has put there, and
// nothing of whoever had its number before.
TEST(Beside, EachRequestHasItsOwnRows) {
  TwoTables all;
  std::mt19937_64 random(11);
  struct One {
    Request* request;
    uint64_t seed;
    bool has_short, has_long;
  };
  std::vector<One> live;
  const auto check = [&](const One& one) {
    ASSERT_EQ(one.request->sent_bytes, one.seed);
    ASSERT_EQ(all.shorts.find(*one.request) != nullptr, one.has_short);
    ASSERT_EQ(all.longs.find(*one.request) != nullptr, one.has_long);
    if (one.has_short) {
      ASSERT_EQ(all.shorts[*one.request].number, uint32_t(one.seed));
    }
    if (one.has_long) {
      for (const uint64_t number : all.longs[*one.request].numbers) ASSERT_EQ(number, one.seed);
    }
  };
  for (int step = 0; step < 30'000; ++step) {
    if (live.size() < 2000 && random() % 5 < 3) {
      Request* request = all.pool.take();
      ASSERT_NE(request, nullptr);
      One one{request, random(), random() % 2 != 0, random() % 2 != 0};
      request->sent_bytes = one.seed;
      if (one.has_short) {
        Short& row = all.shorts.begin(*request);
        ASSERT_EQ(row.number, 7u) << "not as new";
        ASSERT_FALSE(row.flag);
        row.number = uint32_t(one.seed);
        row.flag = true;
      }
      if (one.has_long) {
        Long& row = all.longs.of(*request);
        ASSERT_EQ(&row, &all.longs.of(*request)) << "it has one";
        for (uint64_t& number : row.numbers) {
          ASSERT_EQ(number, 0u) << "not as new";
          number = one.seed;
        }
      }
      live.push_back(one);
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      check(live.back());
      live.back().request->marks = 0;  // as when it is complete
      all.pool.give(live.back().request);
      live.pop_back();
    }
    if (HasFatalFailure()) return;
  }
  for (const One& one : live) check(one);
  EXPECT_GT(all.pool.capacity(), 4 * base::Pool<Request>::slab_size) << "it did not grow";
}

TEST(Beside, ATakenMarkIsOthersOwn) {
  TwoTables all;
  Request* request = all.pool.take();
  request->set(Mark::redirected);
  EXPECT_EQ(all.shorts.find(*request), nullptr);
  all.shorts.begin(*request);
  EXPECT_TRUE(request->has(other));
  EXPECT_EQ(all.longs.find(*request), nullptr);
  request->clear(other);
  EXPECT_EQ(all.shorts.find(*request), nullptr);
  EXPECT_TRUE(request->is_redirected());
}

#if defined(HEADWAY_DEBUG)
TEST(BesideDeathTest, ARowIsReadByItsMarkAlone) {
  TwoTables all;
  Request* request = all.pool.take();
  EXPECT_DEATH((void)all.shorts[*request], "does not hold");
  all.shorts.begin(*request);
  EXPECT_DEATH((void)all.longs[*request], "does not hold");
  EXPECT_DEATH(all.shorts.begin(*request), "does not hold");
  EXPECT_DEATH((void)all.pool.reserve(8), "does not hold") << "the first slab has no room for it";
  request->marks = 0;
  all.pool.give(request);
  EXPECT_DEATH(all.shorts.begin(*request), "does not hold");
}
#endif

}  // namespace
}  // namespace headway::protocols
