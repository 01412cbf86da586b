// Signal handlers of the program while pages are closed: none runs in a thread that owns the
// engine, none is kept out for long, none is lost, and the mask is afterwards what it was.
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "progress/handoff_test_rank.h"

namespace headway::progress {
namespace {

std::atomic<Rank*> rank_of_handler{nullptr};
std::atomic<int> handled{0}, handled_inside{0};
std::atomic<uint32_t> closed{0};

// One that touches a closed page needs somebody else to take the engine.
void on_signal(int) {
  ++handled;
  Rank* rank = rank_of_handler;
  if (rank && closed && rank->handoff.is_held()) ++handled_inside;
}

class HandoffHandlers : public testing::Test {
 protected:
  HandoffHandlers() {
    handled = handled_inside = 0;
    closed = 0;
    struct sigaction action {};
    action.sa_handler = on_signal;
    EXPECT_EQ(sigaction(SIGUSR1, &action, &before_), 0);
    rank.handoff.watch_closed(&closed, &handlers);
    rank_of_handler = &rank;
    sigemptyset(&mask_);
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
  }
  ~HandoffHandlers() {
    rank_of_handler = nullptr;
    EXPECT_EQ(sigaction(SIGUSR1, &before_, nullptr), 0);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    for (int number = 1; number < 32; ++number) {
      EXPECT_EQ(sigismember(&now, number), sigismember(&mask_, number)) << number;
    }
  }
  void close_page() {
    rank.handoff.closes();
    closed = 1;
  }

  std::atomic<uint64_t> handlers{1u << (SIGUSR1 - 1)};
  Rank rank{true};

 private:
  struct sigaction before_ {};
  sigset_t mask_;
};

TEST_F(HandoffHandlers, ComeAtOnceWhileNothingIsClosed) {
  rank.handoff.enter();
  raise(SIGUSR1);
  EXPECT_EQ(handled, 1);
  rank.handoff.leave();
}

TEST_F(HandoffHandlers, WaitForTheEndOfTheCallThatCloses) {
  rank.handoff.enter();
  close_page();
  raise(SIGUSR1);
  EXPECT_EQ(handled, 0);
  rank.handoff.leave();
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(handled_inside, 0);
}

TEST_F(HandoffHandlers, WaitForTheEndOfLaterCalls) {
  rank.handoff.enter();
  close_page();
  rank.handoff.leave();
  for (int i = 1; i <= 3; ++i) {
    if (i % 2) {
      rank.handoff.enter();
    } else {
      rank.handoff.enter_briefly();
    }
    rank.handoff.pending = i == 3;
    raise(SIGUSR1);
    EXPECT_EQ(handled, i - 1);
    rank.handoff.leave();
    EXPECT_EQ(handled, i);
  }
  EXPECT_EQ(handled_inside, 0);
  rank.handoff.enter();
  rank.handoff.pending = 0;
  closed = 0;
  rank.handoff.leave();
  rank.handoff.enter();
  raise(SIGUSR1);
  EXPECT_EQ(handled, 4) << "nothing is closed any more";
  rank.handoff.leave();
}

TEST_F(HandoffHandlers, AreLetInWhileACallWaits) {
  rank.handoff.enter();
  close_page();
  raise(SIGUSR1);
  EXPECT_EQ(handled, 0);
  const uint64_t start = base::now_ns();
  while (handled == 0 && base::now_ns() - start < limit_ns) rank.handoff.breathe();
  EXPECT_EQ(handled, 1);
  raise(SIGUSR1);
  while (handled == 1 && base::now_ns() - start < limit_ns) rank.handoff.admit_handlers();
  EXPECT_EQ(handled, 2);
  raise(SIGUSR1);
  rank.handoff.yield();
  EXPECT_EQ(handled, 3);
  rank.handoff.leave();
  EXPECT_EQ(handled_inside, 0);
}

TEST_F(HandoffHandlers, AreHeldBackInAWaitThatTheyCameInto) {
  handlers = 0;
  rank.handoff.enter();
  close_page();
  raise(SIGUSR1);
  EXPECT_EQ(handled, 1) << "the program was not known to have any";
  handlers = 1;
  handled_inside = 0;  // the one above
  rank.handoff.breathe();
  raise(SIGUSR1);
  EXPECT_EQ(handled, 1);
  rank.handoff.leave();
  EXPECT_EQ(handled, 2);
  EXPECT_EQ(handled_inside, 0);
}

TEST_F(HandoffHandlers, InterruptASleep) {
  rank.handoff.enter();
  close_page();
  const pthread_t self = pthread_self();
  std::thread other([self] {
    usleep(20'000);
    pthread_kill(self, SIGUSR1);
  });
  const uint64_t start = base::now_ns();
  rank.handoff.sleep(10'000);
  EXPECT_LT(base::now_ns() - start, limit_ns);
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(handled_inside, 0);
  raise(SIGUSR1);
  EXPECT_EQ(handled, 1);
  rank.handoff.leave();
  EXPECT_EQ(handled, 2);
  other.join();
}

// One call after the other, with signals at random moments. Nobody else takes the engine, so where
// it is held, it is held by whom the handler interrupted.
TEST_F(HandoffHandlers, NeverComeBetweenTakingTheEngineAndHoldingThemBack) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> calls{0};
  std::thread program([&] {
    std::mt19937_64 random(base_seed());
    while (!stop) {
      if (random() % 2) {
        rank.handoff.enter();
      } else {
        rank.handoff.enter_briefly();
      }
      if (random() % 2) {
        close_page();
      } else if (random() % 8 == 0) {
        closed = 0;
      }
      spin_some(random, 30);
      if (random() % 8 == 0) rank.handoff.breathe();
      rank.handoff.leave();
      ++calls;
    }
  });
  const uint64_t end = base::now_ns() + box_ns;
  while (base::now_ns() < end) {
    pthread_kill(program.native_handle(), SIGUSR1);
    usleep(20);
  }
  stop = true;
  program.join();
  EXPECT_GT(calls, 1000u);
  EXPECT_GT(handled, 100);
  EXPECT_EQ(handled_inside, 0) << "seed " << base_seed();
}

// The sleeper, in its handler, waits for a page; only the message thread can bring its data.
class HeldUpSleeper final : public Work {
 public:
  bool advance() override {
    char byte;
    const bool came = read(data[0], &byte, 1) == 1;
    if (came) brought.store(true);
    return came;
  }
  bool hand_on() override { return false; }
  uint32_t wanted() override { return event_mail; }
  void awake() override {}
  void thread_begins() override {}
  void faults() override {
    char byte;
    touched.store(read(fault[0], &byte, 1) == 1 || touched);
  }
  bool is_awaited() override { return touched && !brought; }

  int data[2], fault[2];
  std::atomic<uint32_t> armed{0};
  std::atomic<bool> touched{false}, brought{false}, gave_up{false};
};
std::atomic<HeldUpSleeper*> held_up{nullptr};
void touch_page(int) {
  HeldUpSleeper* work = held_up;
  EXPECT_EQ(write(work->fault[1], "f", 1), 1);
  const uint64_t start = base::now_ns();
  while (!work->brought && !work->gave_up) {
    sched_yield();
    if (base::now_ns() - start > limit_ns) work->gave_up = true;
  }
}

TEST(HandoffHeldUp, TheMessageThreadWorksForASleeperInItsHandler) {
  HeldUpSleeper work;
  held_up = &work;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, work.data), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, work.fault), 0);
  struct sigaction action {
  }, before{};
  action.sa_handler = touch_page;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<uint32_t> closed{0};
  std::atomic<uint64_t> handlers{1u << (SIGUSR1 - 1)};
  Handoff handoff;
  ASSERT_EQ(handoff.start(&work, &work.armed, work.data[0], true), Outcome::ok);
  handoff.watch_closed(&closed, &handlers);
  ASSERT_EQ(handoff.watch_faults(work.fault[0]), Outcome::ok);
  handoff.enter();
  handoff.closes();
  closed = 1;
  handoff.pending = 1;
  const pthread_t self = pthread_self();
  std::thread other([&] {
    usleep(20'000);
    pthread_kill(self, SIGUSR1);
    usleep(50'000);  // the message thread has looked, and sleeps
    EXPECT_EQ(write(work.data[1], "d", 1), 1);
  });
  handoff.sleep(2'000);
  EXPECT_TRUE(work.brought);
  EXPECT_FALSE(work.gave_up) << "the handler waited for 5 s";
  handoff.pending = 0;
  closed = 0;
  handoff.leave();
  other.join();
  handoff.stop();
  for (const int fd : {work.data[0], work.data[1], work.fault[0], work.fault[1]}) close(fd);
  EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

}  // namespace
}  // namespace headway::progress
