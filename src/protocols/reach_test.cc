// What operations touch, against a list of all of them that is looked through; and that a question
// does not cost more because much is under way.
#include "protocols/reach.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace headway::protocols {

class TestStages {
 public:
  static void set(Request& request, Stage stage) { request.stage_ = stage; }
};

namespace {

using guard::page_bytes;
using guard::Range;

char* at(uintptr_t address) { return reinterpret_cast<char*>(address); }

constexpr uintptr_t home = 1 << 20;

// A pool of requests whose memory is never touched, only its addresses count.
class Operations {
 public:
  base::Pool<Request> pool;
  Reach reach{pool};

  Request* begin(RequestKind kind, uintptr_t from, uint64_t bytes) {
    Request* request = pool.take();
    request->kind = kind;
    TestStages::set(*request, Stage::idle);
    request->marks = 0;
    request->done.store(Done::no);
    request->memory = UserMemory(at(from), bytes);
    start(request);
    return request;
  }
  void start(Request* request) {
    if (reach.is_kept()) reach.note(*request);
    TestStages::set(*request,
                    request->kind == RequestKind::send ? Stage::requested : Stage::posted);
  }
  static void end(Request* request) { TestStages::set(*request, Stage::idle); }
  void give(Request* request) {
    TestStages::set(*request, Stage::idle);
    request->kind = RequestKind::null;
    pool.give(request);
  }
};

std::set<Request*> met(Reach& reach, Range pages) {
  std::set<Request*> found;
  EXPECT_TRUE(reach.visit(pages, [&](Request* request) {
    found.insert(request);
    return true;
  }));
  return found;
}

// Operations begin, end, begin again with other memory, are released or copied aside; numbers are
// used again. Sometimes so much begins without a question that the index is given up.
TEST(Reach, IsTheSameAsAList) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto any = [&](uint64_t n) { return uint64_t(random() % n); };
    Operations all;
    std::set<Request*> active, idle;
    const auto touches_home = [](const Request* request) {
      return request->stage() != Stage::idle && !request->is_redirected();
    };
    for (int step = 0; step < 4000; ++step) {
      const uint64_t what = any(10);
      if (what < 4 || active.empty()) {
        const uint64_t many = any(500) == 0 ? 2000 : 1;
        for (uint64_t i = 0; i < many; ++i) {
          const auto kind = any(2) ? RequestKind::send : RequestKind::receive;
          Request* request = all.begin(kind, home + any(200'000), any(4) ? any(9000) : any(90'000));
          if (i < 5) {
            active.insert(request);
          } else {
            all.give(request);
          }
        }
      } else if (what < 7) {
        auto one = active.begin();
        std::advance(one, ptrdiff_t(any(active.size())));
        Request* request = *one;
        switch (any(4)) {
          case 0:
            active.erase(request);
            all.give(request);
            break;
          case 1:
            active.erase(request);
            Operations::end(request);
            idle.insert(request);
            break;
          default: request->set(Mark::redirected);
        }
      } else if (what < 8 && !idle.empty()) {
        Request* request = *idle.begin();
        idle.erase(idle.begin());
        request->marks = 0;
        request->memory = UserMemory(at(home + any(200'000)), any(30'000));
        all.start(request);
        active.insert(request);
      }
      if (any(3) == 0) continue;
      const Range pages{at(home + any(50) * page_bytes), 1 + any(4)};
      std::set<Request*> wanted;
      for (Request* request : active) {
        const UserMemory::Extent extent = request->memory.extent();
        if (touches_home(request) && extent.from < extent.to && extent.from < pages.end() &&
            pages.base < extent.to) {
          wanted.insert(request);
        }
      }
      ASSERT_EQ(met(all.reach, pages), wanted) << "step " << step;
      Request* self = wanted.empty() ? nullptr : *wanted.begin();
      ASSERT_EQ(all.reach.is_free(pages, self, nullptr), wanted.size() <= 1);
    }
  }
}

TEST(Reach, ACallThatUsesMemoryKeepsItOpen) {
  Operations all;
  const Range pages{at(home), 2};
  EXPECT_TRUE(all.reach.is_free(pages, nullptr, nullptr));
  Reach::Use use;
  all.reach.begin(use, {pages.end() - 1, pages.end() + 5});
  EXPECT_FALSE(all.reach.is_free(pages, nullptr, nullptr));
  EXPECT_TRUE(all.reach.is_free({pages.end() + page_bytes, 1}, nullptr, nullptr));
  all.reach.end(use);
  EXPECT_TRUE(all.reach.is_free(pages, nullptr, nullptr));
}

// Each step of a schedule is told of, whether it has begun or not, until its user is let go.
TEST(Reach, ScheduleStepsCountUntilItsUserIsLetGo) {
  Operations all;
  all.reach.ask_schedules([](const Request&, Reach& reach) {
    reach.touch({at(home), at(home) + 10});
    reach.touch({at(home) + 5 * page_bytes, at(home) + 6 * page_bytes});
  });
  for (const bool is_kept : {false, true}) {
    SCOPED_TRACE(is_kept);
    ASSERT_EQ(all.reach.is_kept(), is_kept);
    Request* schedule = all.begin(RequestKind::schedule, 0, 0);
    TestStages::set(*schedule, Stage::running);
    EXPECT_FALSE(all.reach.is_free({at(home), 1}, nullptr, nullptr));
    EXPECT_FALSE(all.reach.is_free({at(home) + 5 * page_bytes, 1}, nullptr, nullptr));
    EXPECT_TRUE(all.reach.is_free({at(home) + 5 * page_bytes, 1}, nullptr, schedule));
    EXPECT_TRUE(all.reach.is_free({at(home) + page_bytes, 4}, nullptr, nullptr));
    schedule->done.store(Done::released);
    EXPECT_TRUE(all.reach.is_free({at(home), 9}, nullptr, nullptr));
    all.give(schedule);
  }
}

std::string told_by(const std::function<void()>& what) {
  testing::internal::CaptureStderr();
  what();
  return testing::internal::GetCapturedStderr();
}

TEST(Reach, TheFirstOverlapIsToldIfItIsWished) {
  using enum RequestKind;
  Operations silent;
  EXPECT_EQ(told_by([&] {
              silent.begin(receive, home, 100);
              silent.begin(receive, home, 100);
            }),
            "");
  Operations all;
  all.reach.tell_overlaps(7);
  // Two sends may read one buffer, and one that is over has no buffer.
  EXPECT_EQ(told_by([&] {
              all.begin(send, home, 100);
              all.begin(send, home + 50, 100);
              Operations::end(all.begin(receive, home + 1000, 100));
              all.begin(receive, home + 1000, 100);
              all.begin(receive, home + 1100, 100);
              all.begin(receive, home + 1050, 0);
            }),
            "");
  const std::string told = told_by([&] { all.begin(receive, home + 149, 30); });
  EXPECT_NE(told.find("rank 7: a receive (source 0, tag 0, 30 bytes) begins in memory of another "
                      "operation under way, a send (destination 0, tag 0, 100 bytes): 1 bytes"),
            std::string::npos)
      << told;
  EXPECT_EQ(told_by([&] { all.begin(send, home + 149, 30); }), "");  // once
}

// Nanoseconds for a question and a start, while `many` operations are under way.
double cost_among(uintptr_t many) {
  Operations all;
  constexpr uintptr_t step = 4 * page_bytes;
  std::vector<Request*> receives;
  for (uintptr_t i = 0; i < many; ++i) {
    receives.push_back(all.begin(RequestKind::receive, home + i * step, 3 * page_bytes));
  }
  const uintptr_t rounds = 100'000 / many;
  double least = 1e18;  // others use the cores, too
  for (int attempt = 0; attempt < 5; ++attempt) {
    const uint64_t began = base::now_ns();
    for (uintptr_t round = 0; round < rounds; ++round) {
      for (uintptr_t i = 0; i < many; ++i) {
        EXPECT_TRUE(all.reach.is_free({at(home + i * step), 3}, receives[i], nullptr));
        Operations::end(receives[i]);
        all.start(receives[i]);
      }
    }
    const double ns = double(base::now_ns() - began) / double(rounds * many);
    least = ns < least ? ns : least;
  }
  return least;
}

// Looking at all of them each time would make it a hundred times as much.
TEST(Reach, AWaitForManyStaysLinear) {
  const double few = cost_among(100), many = cost_among(10'000);
  EXPECT_LT(many, 15 * few) << few << " ns, " << many << " ns";
}

}  // namespace
}  // namespace headway::protocols
