// Threads that doze in a wait, asleep or parked beside one that polls: each event that they may
// wait for is told to them, whoever moves it. The test moves it, frame by frame, and looks at
// nothing else: a dozer that is not told stays where it is until its safety net, which is longer
// than the test waits.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "waiting/many.h"
#include "waiting/waiting_test_line.h"

namespace headway::waiting {
namespace {

using protocols::Request;
using protocols::RequestKind;

constexpr uint64_t limit_ns = 5'000'000'000;
constexpr int net_ms = 20'000;

enum class As { asleep, parked };

class Dozers : public testing::TestWithParam<As>, public OverALine {
 protected:
  void TearDown() override {
    if (dozer_.joinable() && !ended_) {
      ADD_FAILURE() << "a thread waits on";
      fflush(nullptr);
      _exit(1);
    }
    if (dozer_.joinable()) dozer_.join();
    stop();
  }

  // A thread that waits for that, and dozes when this returns; the engine is held.
  void begin_to_doze(std::function<bool()> done, bool inside = false, int longest_ms = net_ms) {
    begin_to_wait([=, this] { waiter_.until(done, nullptr, longest_ms); }, inside);
  }
  void begin_to_wait(std::function<void()> wait, bool inside) {
    progress::Handoff& handoff = engine_.handoff();
    handoff.enter();
    if (GetParam() == As::parked) {
      handoff.driver = progress::Driver::waiting;
      handoff.set_poller(true);
    } else {
      handoff.leave();
    }
    dozer_ = std::thread([this, wait, inside] {
      while (!is_made_) sched_yield();
      engine_.handoff().enter();
      if (inside) engine_.release().wait_begins();
      wait();
      if (inside) engine_.release().wait_ends();
      ended_.store(true);
      engine_.handoff().leave();
    });
    is_made_ = true;
    const uint64_t start = base::now_ns();
    for (;;) {
      if (GetParam() == As::parked) {
        handoff.breathe();
      } else {
        handoff.enter();
      }
      if (handoff.has_dozers()) break;
      ASSERT_LT(base::now_ns() - start, limit_ns) << "it does not doze";
      if (GetParam() == As::asleep) handoff.leave();
      usleep(100);
    }
  }
  // Lets it go on; the engine is not held afterwards.
  void await_end(uint64_t late_wakes = 0) {
    progress::Handoff& handoff = engine_.handoff();
    if (GetParam() == As::asleep) handoff.leave();
    const uint64_t start = base::now_ns();
    while (!ended_ && base::now_ns() - start < limit_ns) {
      if (GetParam() == As::parked) handoff.breathe();
      usleep(100);
    }
    EXPECT_TRUE(ended_) << "nobody has told it";
    EXPECT_EQ(handoff.counters.late_wakes, late_wakes);
    if (GetParam() == As::parked) {
      handoff.set_poller(false);
      handoff.leave();
    }
  }

  std::thread dozer_;
  std::atomic<bool> is_made_{false};  // who makes a thread blocks the signal of trapped calls
  std::atomic<bool> ended_{false};
};

// Without edges a receive may be released as soon as it is matched.
TEST_P(Dozers, AreToldOfAReceiveThatIsReadyAtItsMatch) {
  start(1);
  if (IsSkipped()) return;
  Request* receive = post(memory_.base);
  begin_to_doze([&] { return engine_.release().is_ready(receive); });
  if (HasFatalFailure()) return;
  announce();
  await_end();
  end(receive);
}

TEST_P(Dozers, AreToldOfAReceiveWhoseEdgesHaveCome) {
  start(1);
  if (IsSkipped()) return;
  Request* receive = post(memory_.base + 100);
  begin_to_doze([&] { return engine_.release().is_ready(receive); });
  if (HasFatalFailure()) return;
  announce();
  const protocols::Transfer& transfer = engine_.transfer(*receive);
  EXPECT_EQ(transfer.head, page - 100);
  EXPECT_EQ(transfer.tail, 100u);
  come(receive, 0, transfer.head);
  EXPECT_FALSE(engine_.release().is_ready(receive));
  come(receive, bytes - transfer.tail, transfer.tail);
  await_end();
  end(receive);
}

// While pages are closed the program makes no thread, and each thread has to have closed some: so
// the dozer closes them itself.
TEST_P(Dozers, AreToldOfPagesThatOpen) {
  start(1);
  if (IsSkipped()) return;
  if (!can_close()) GTEST_SKIP() << "no calls can be trapped here";
  Request* receive = post(memory_.base);
  engine_.handoff().enter();
  announce();
  engine_.handoff().leave();
  const char* awaited = memory_.base + 2 * page;
  bool closed = false;
  begin_to_doze(
      [&] {
        if (!closed) {
          closed = engine_.release().close_rest(receive);
          EXPECT_TRUE(closed);
          engine_.release().let_user_go(receive);
        }
        return !engine_.release().is_closed(awaited, 1);
      },
      true);
  if (HasFatalFailure()) return;
  come_all(receive, 0, 3 * page);
  await_end();
  engine_.handoff().enter();
  come_all(receive, 3 * page, bytes);
  engine_.handoff().leave();
  end(receive);
}

TEST_P(Dozers, AreToldWhenAllAreMatched) {
  start(2);
  if (IsSkipped()) return;
  if (!can_close()) GTEST_SKIP() << "no calls can be trapped here";
  Request* receive = post(memory_.base);
  bool closed = false;
  begin_to_doze(
      [&] {
        if (!closed) {
          closed = engine_.release().foresee(receive);
          EXPECT_TRUE(closed);
          engine_.release().let_user_go(receive);
        }
        return engine_.release().unseen().count() == 0;
      },
      true);
  if (HasFatalFailure()) return;
  EXPECT_EQ(engine_.release().unseen().count(), 1u);
  announce();
  await_end();
  engine_.handoff().enter();
  come_all(receive, 0, bytes);
  engine_.handoff().leave();
  end(receive);
}

// Of several that are waited for all may go but one, which is over then.
TEST_P(Dozers, AreToldOfTheOneThatTheOthersWereKeptFor) {
  start(1);
  if (IsSkipped()) return;
  if (!can_close()) GTEST_SKIP() << "no calls can be trapped here";
  Memory other;
  Request* const list[] = {post(other.base, 2), post(memory_.base)};
  const auto at = [](const void* requests, uint32_t place) {
    return static_cast<Request* const*>(requests)[place];
  };
  engine_.handoff().enter();
  announce();
  engine_.handoff().leave();
  begin_to_wait([&] { Many(waiter_, list, 2, at, {}).until_all(); }, false);
  if (HasFatalFailure()) return;
  come_short(2);
  await_end();
  EXPECT_EQ(int(list[1]->done.load()), int(protocols::Done::released));
  engine_.handoff().enter();
  come_all(list[1], 0, bytes);
  engine_.handoff().leave();
  for (Request* receive : list) end(receive);
}

// A doze that its safety net ends too late is counted, by what its wait says itself; a short one is
// a wait for the clock.
TEST_P(Dozers, AreCountedWhenNobodyTellsThem) {
  start(0);
  bool has_come = false;
  begin_to_doze([&] { return has_come; }, false, progress::Handoff::long_sleep_ms);
  if (HasFatalFailure()) return;
  has_come = true;
  await_end(1);
}

TEST_P(Dozers, WaitForTheClockAsLongAsTheirWaitSays) {
  constexpr int looks = 100;
  start(0);
  int looked = 0;
  begin_to_doze([&] { return ++looked > looks; }, false, 1);
  if (HasFatalFailure()) return;
  await_end();
}

INSTANTIATE_TEST_SUITE_P(All, Dozers, testing::Values(As::asleep, As::parked),
                         [](const auto& info) {
                           return info.param == As::asleep ? "asleep" : "parked";
                         });

// Beside a thread that polls.
class Parked : public Dozers {};

// One that this side copies alone, which it has begun but not gone on with.
TEST_P(Parked, AreToldOfAReceiveThatIsCopied) {
  start(1, true);
  if (IsSkipped()) return;
  const Memory from;
  Request* receive = post(memory_.base);
  begin_to_doze([&] { return engine_.release().is_ready(receive); });
  if (HasFatalFailure()) return;
  announce(from.base);
  EXPECT_EQ(int(receive->stage()), int(protocols::Stage::pulling));
  await_end();
  engine_.handoff().enter();
  waiter_.request(receive);
  engine_.handoff().leave();
  end(receive);
}

// Who polls and runs a function of the user does not poll meanwhile: here that function waits for a
// thread that is parked, whose message comes only to who looks.
struct Call : progress::UserCall {
  std::function<bool()> body;
  bool was_right = false, is_over = false;
};

TEST_P(Parked, PollWhileTheUsersFunctionRuns) {
  start(0, false, false);
  Request* receive = post(memory_.base);
  Call call;
  call.body = [this, receive] {
    engine_.handoff().enter();
    line_.arrives = [this, receive] { engine_.complete(receive, Outcome::ok); };
    engine_.handoff().leave();
    const uint64_t start = base::now_ns();
    while (!ended_ && base::now_ns() - start < limit_ns) usleep(100);
    return ended_.load();
  };
  call.run = [](progress::UserCall* base) {
    auto* self = static_cast<Call*>(base);
    self->was_right = self->body();
  };
  call.finished = [](progress::UserCall* base) { static_cast<Call*>(base)->is_over = true; };
  begin_to_doze([receive] { return receive->done.load(std::memory_order_relaxed) != 0; });
  if (HasFatalFailure()) return;
  engine_.handoff().set_poller(false);  // this thread's own wait takes its place
  engine_.handoff().user_calls.push_back(&call);
  waiter_.until([&call] { return call.is_over; }, nullptr, net_ms);
  EXPECT_TRUE(call.was_right) << "nobody polled";
  engine_.handoff().set_poller(true);
  await_end();
  end(receive);
}

long waits_of_this_thread() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

// Each is woken once, when its own request is over, however many others are before.
TEST_P(Parked, AreWokenForTheirOwnRequestAlone) {
  constexpr long threads = 8;
  start(0);
  progress::Handoff& handoff = engine_.handoff();
  handoff.enter();
  handoff.driver = progress::Driver::waiting;
  handoff.set_poller(true);
  std::atomic<long> begun{0}, waited{0};
  std::vector<Request*> requests;
  std::vector<std::thread> waiters;
  for (long i = 0; i < threads; ++i) {
    Request* request = engine_.take_request();
    request->kind = RequestKind::receive;
    request->held_by_user = true;
    ++handoff.pending;
    requests.push_back(request);
  }
  for (Request* request : requests) {
    waiters.emplace_back([&, request] {
      handoff.enter();
      ++begun;
      const long before = waits_of_this_thread();
      waiter_.request(request);
      waited += waits_of_this_thread() - before;
      handoff.leave();
    });
  }
  const auto let_in = [&](uint64_t ns) {
    for (const uint64_t start = base::now_ns(); base::now_ns() - start < ns;) {
      handoff.breathe();
      usleep(100);
    }
  };
  const uint64_t start = base::now_ns();
  while (begun < threads && base::now_ns() - start < limit_ns) let_in(1'000'000);
  for (Request* request : requests) {
    engine_.complete(request, Outcome::ok);
    let_in(10'000'000);
  }
  handoff.set_poller(false);
  handoff.leave();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(begun.load(), threads);
  EXPECT_LT(waited.load(), 2 * threads);  // woken for each, they would wait 36 times
  EXPECT_EQ(handoff.counters.late_wakes, 0u);
  for (Request* request : requests) end(request);
}

// Where it has no core of its own it does not park, but looks in turns with the one that polls.
TEST_P(Parked, AreNotThoseWhoWantACore) {
  start(0);
  progress::Handoff& handoff = engine_.handoff();
  Waiter waiter(engine_, {}, where_);
  handoff.enter();
  handoff.driver = progress::Driver::waiting;
  handoff.set_poller(true);
  waiter.expect_threads(1);
  std::atomic<int> looks{0};
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    handoff.enter();
    waiter.until([&] { return ++looks > 2 || is_over; }, nullptr, net_ms);
    handoff.leave();
  });
  const uint64_t start = base::now_ns();
  while (looks <= 2 && base::now_ns() - start < limit_ns) {
    handoff.breathe();
    usleep(100);
  }
  EXPECT_GT(looks.load(), 2);  // before it dozes it has looked twice
  is_over = true;
  handoff.came_far();
  handoff.set_poller(false);
  handoff.leave();
  other.join();
}

INSTANTIATE_TEST_SUITE_P(All, Parked, testing::Values(As::parked),
                         [](const auto&) { return "beside_one_that_polls"; });

}  // namespace
}  // namespace headway::waiting
