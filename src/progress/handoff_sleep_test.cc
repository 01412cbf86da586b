// Litmus tests of ranks that sleep or park inside MPI: whatever comes must wake them, and the
// message thread, awake at the same time, must not take it from them.
#include <thread>
#include <vector>

#include "progress/handoff_test_rank.h"

namespace headway::progress {
namespace {

// A rank that sleeps inside MPI, in turns with leaving, so that the message thread is often just
// awake when the rank goes to sleep.
void sleeper(bool with_thread, bool sockets, bool outside_between) {
  Rank rank(with_thread);
  std::atomic<uint64_t> asked{0};
  std::atomic<bool> stop{false};
  std::thread peer([&] {
    std::mt19937_64 random(base_seed() + 9);
    uint64_t bytes = 0;
    for (uint64_t now = 1; !stop; ++now) {
      if (outside_between) {
        // Something that wakes the message thread while the rank comes in to sleep.
        rank.byte();
        ++bytes;
        spin_some(random, 600);
      }
      for (int spins = 0; asked.load(std::memory_order_acquire) < now && !stop; ++spins) {
        if (spins > 200) sched_yield();
      }
      if (stop) break;
      spin_some(random, random() % 8 ? 800 : 20'000);
      if (sockets && random() % 2) {
        rank.byte();
        ++bytes;
        if (!reaches(rank.taken_bytes, bytes)) ADD_FAILURE() << "a byte was lost";
      }
      rank.mail(now);
    }
  });
  std::mt19937_64 random(base_seed());
  const uint64_t end = base::now_ns() + box_ns;
  uint64_t now = 1;
  for (; now <= 100'000 && base::now_ns() < end && !testing::Test::HasFailure(); ++now) {
    if (outside_between) {
      rank.handoff.enter();
      rank.handoff.pending = 1;
      rank.handoff.leave();
      spin_some(random, 600);
    }
    rank.handoff.enter();
    rank.handoff.driver = Driver::waiting;
    rank.handoff.set_poller(true);
    asked.store(now, std::memory_order_release);
    const uint64_t start = base::now_ns();
    while (rank.taken_mail.load() < now) {
      if (random() % 4 == 0) attend(rank, random);
      rank.handoff.sleep(int(limit_ns / 1'000'000));
      rank.advance();
      if (base::now_ns() - start >= limit_ns) {
        ADD_FAILURE() << "the sleeper was not woken in round " << now;
        break;
      }
    }
    EXPECT_EQ(rank.handoff.driver, Driver::waiting);
    rank.handoff.set_poller(false);
    rank.handoff.leave();
  }
  stop = true;
  peer.join();
  rank.handoff.enter();
  EXPECT_EQ(rank.handoff.counters.late_wakes, 0u);
  EXPECT_GT(rank.handoff.counters.sleeps, 10u);
  rank.handoff.pending = 0;
  rank.handoff.leave();
  EXPECT_EQ(rank.two_owners.load(), 0);
}

TEST(Handoff, ASleeperIsWokenByTheBell) { sleeper(true, false, false); }
TEST(Handoff, ASleeperIsWokenByTheBellWithoutAThread) { sleeper(false, false, false); }
TEST(Handoff, ASleeperIsWokenBySockets) { sleeper(true, true, false); }
TEST(Handoff, ASleeperIsWokenWhileTheThreadIsAwakeToo) { sleeper(true, true, true); }

// What it waits for may be done by the last thing that it does itself.
TEST(Handoff, WhatIsDoneWhileItIsHandedOnWakesTheSleeper) {
  Rank rank(true);
  rank.handoff.enter();
  rank.handoff.driver = Driver::waiting;
  rank.handoff.set_poller(true);
  rank.in_hand_on = [](Rank& self) { self.handoff.completed(); };
  const uint64_t start = base::now_ns();
  EXPECT_TRUE(rank.handoff.sleep(int(limit_ns / 1'000'000)));
  EXPECT_LT(base::now_ns() - start, limit_ns / 2);
  rank.in_hand_on = nullptr;
  rank.handoff.set_poller(false);
  rank.handoff.leave();
}

// The narrow case, made wide: the bell rings after the sleeper's last look, and the message thread
// wakes for it while the sleeper still owns the engine. It must leave the ring to the sleeper.
TEST(Handoff, TheThreadDoesNotEatTheSleepersRing) {
  Rank rank(true);
  rank.handoff.enter();
  rank.handoff.pending = 1;
  rank.handoff.leave();  // the sockets and the bell may wake the thread from here on
  rank.handoff.enter();
  rank.handoff.driver = Driver::waiting;
  rank.handoff.set_poller(true);
  rank.after_look = [](Rank& self) {
    self.after_look = nullptr;
    self.mail(1);
    usleep(50'000);
  };
  const uint64_t start = base::now_ns();
  while (rank.taken_mail.load() < 1 && base::now_ns() - start < limit_ns) {
    rank.handoff.sleep(int(limit_ns / 1'000'000));
    rank.advance();
  }
  EXPECT_LT(base::now_ns() - start, limit_ns / 2) << "the sleeper was not woken";
  EXPECT_EQ(rank.handoff.counters.late_wakes, 0u);
  rank.handoff.set_poller(false);
  rank.handoff.pending = 0;
  rank.handoff.leave();
}

TEST(Handoff, ASleepEndsByItself) {
  Rank rank(true);
  rank.handoff.enter();
  const uint64_t start = base::now_ns();
  rank.handoff.sleep(30);
  const uint64_t took = base::now_ns() - start;
  EXPECT_GE(took, 25'000'000u);
  EXPECT_EQ(rank.armed.load(), 0u) << "awake and still armed";
  EXPECT_EQ(rank.handoff.counters.late_wakes, 0u);
  rank.handoff.leave();
}

// Another thread enters and leaves while one sleeps: it takes the armed word away, so the sleeper
// must arm again.
TEST(Handoff, AVisitorDoesNotMakeASleeperDeaf) {
  Rank rank(true);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> asked{0};
  std::thread visitor([&] {
    std::mt19937_64 random(4);
    while (!stop) {
      rank.handoff.enter();
      spin_some(random, 20);
      rank.handoff.leave();
      spin_some(random, 3000);
    }
  });
  std::thread peer([&] {
    std::mt19937_64 random(5);
    for (uint64_t now = 1; !stop; ++now) {
      while (asked.load(std::memory_order_acquire) < now && !stop) sched_yield();
      spin_some(random, 5000);
      rank.mail(now);
    }
  });
  const uint64_t end = base::now_ns() + box_ns;
  for (uint64_t now = 1; now < 50'000 && base::now_ns() < end && !HasFailure(); ++now) {
    rank.handoff.enter();
    rank.handoff.driver = Driver::waiting;
    rank.handoff.set_poller(true);
    asked.store(now, std::memory_order_release);
    const uint64_t start = base::now_ns();
    while (rank.taken_mail.load() < now && !HasFailure()) {
      // The visitor hides the mail from nobody, but takes no mail either.
      rank.handoff.sleep(int(limit_ns / 1'000'000));
      rank.advance();
      EXPECT_LT(base::now_ns() - start, limit_ns) << "round " << now;
    }
    rank.handoff.set_poller(false);
    rank.handoff.leave();
  }
  stop = true;
  visitor.join();
  peer.join();
  EXPECT_EQ(rank.handoff.counters.late_wakes, 0u);
  EXPECT_EQ(rank.two_owners.load(), 0);
}

// Threads that park wake when something completes, when the poller goes, and at the latest by time.
TEST(Handoff, ParkedThreadsWakeWhenThePollerLeaves) {
  Rank rank(true);
  std::atomic<int> parked{0}, woken{0};
  rank.handoff.enter();
  rank.handoff.set_poller(true);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      rank.handoff.enter();
      EXPECT_TRUE(rank.handoff.is_polled());
      ++parked;
      while (rank.handoff.is_polled()) rank.handoff.park(100);
      ++woken;
      rank.handoff.leave();
    });
  }
  const uint64_t start = base::now_ns();
  while (parked < 3 && base::now_ns() - start < limit_ns) {
    rank.handoff.breathe();
    sched_yield();
  }
  EXPECT_EQ(parked.load(), 3) << "breathe() does not let the others in";
  rank.handoff.set_poller(false);
  rank.handoff.leave();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(woken.load(), 3);
}

// Who polls may stop without leaving: whenever it gives the engine away, a parked thread is told,
// so that it can poll.
TEST(Handoff, AParkedThreadWakesWhenThePollerYields) {
  Rank rank(true);
  std::atomic<bool> woken{false};
  rank.handoff.enter();
  rank.handoff.set_poller(true);
  std::thread other([&] {
    rank.handoff.enter();
    while (rank.handoff.is_polled()) rank.handoff.park(int(4 * limit_ns / 1'000'000));
    woken = true;
    rank.handoff.leave();
  });
  const auto yield_until = [&](auto is) {
    const uint64_t start = base::now_ns();
    while (!is() && base::now_ns() - start < limit_ns) rank.handoff.yield();
  };
  yield_until([&] { return rank.handoff.has_dozers(); });
  EXPECT_TRUE(rank.handoff.has_dozers());
  rank.handoff.set_poller(false);
  yield_until([&] { return woken.load(); });
  EXPECT_TRUE(woken) << "nobody polls";
  EXPECT_EQ(rank.handoff.counters.late_wakes, 0u);
  rank.handoff.leave();
  other.join();
}

// Whoever leaves beside one that polls has nobody ring: it would wake a thread for nothing.
TEST(Handoff, NobodyRingsWhereAThreadPolls) {
  Rank rank(true);
  std::atomic<bool> is_out{false};
  rank.handoff.enter();
  rank.handoff.set_poller(true);
  std::thread other([&] {
    rank.handoff.enter();
    rank.handoff.pending = 1;
    rank.handoff.leave();
    is_out = true;
  });
  const uint64_t start = base::now_ns();
  while (!is_out && base::now_ns() - start < limit_ns) rank.handoff.breathe();
  EXPECT_TRUE(is_out);
  EXPECT_EQ(rank.handoff.counters.arms, 0u);
  other.join();
  rank.handoff.set_poller(false);
  rank.handoff.leave();
  rank.handoff.enter();
  EXPECT_EQ(rank.handoff.counters.arms, 1u) << "nobody polls any more";
  rank.handoff.pending = 0;
  rank.handoff.leave();
}

// What it sleeps over may be due by the clock alone. Another thread that comes and parks beside it
// has not looked at that.
TEST(Handoff, AVisitorWhoParksDoesNotTakeASleepersReminder) {
  Rank rank(true);
  rank.in_hand_on = [](Rank& self) { self.handoff.remind(200'000, Handoff::While::away); };
  std::atomic<bool> sleeps{false}, is_up{false};
  std::thread sleeper([&] {
    rank.handoff.enter();
    rank.handoff.driver = Driver::waiting;
    rank.handoff.set_poller(true);
    sleeps = true;
    const uint64_t start = base::now_ns();
    rank.handoff.sleep(int(limit_ns / 1'000'000));
    EXPECT_LT(base::now_ns() - start, limit_ns / 2);
    rank.in_hand_on = nullptr;
    rank.handoff.set_poller(false);
    is_up = true;
    rank.handoff.leave();
  });
  while (!sleeps) sched_yield();
  rank.handoff.enter();  // when it sleeps
  if (!is_up) {
    rank.handoff.driver = Driver::waiting;
    rank.handoff.park(int(2 * limit_ns / 1'000'000));
  }
  rank.handoff.leave();
  sleeper.join();
}

// One of those who park is called to poll, and no other before that one is there.
TEST(Handoff, OneIsCalledToPollHoweverOftenOthersLeave) {
  Rank rank(true);
  std::atomic<int> parked{0}, woken{0};
  std::atomic<bool> stop{false};
  rank.handoff.enter();
  rank.handoff.set_poller(true);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      rank.handoff.enter();
      ++parked;
      bool polls = false;
      while (!stop) {
        if (!polls && rank.handoff.is_polled()) {
          rank.handoff.park(int(4 * limit_ns / 1'000'000));
          ++woken;
        } else {
          if (!polls) rank.handoff.set_poller(true);
          polls = true;
          rank.handoff.breathe();
        }
      }
      if (polls) rank.handoff.set_poller(false);
      rank.handoff.leave();
    });
  }
  const auto await = [&](auto is) {
    const uint64_t start = base::now_ns();
    while (!is() && base::now_ns() - start < limit_ns) {
      rank.handoff.breathe();
      sched_yield();
    }
    EXPECT_TRUE(is());
  };
  await([&] { return parked == 4; });
  rank.handoff.set_poller(false);
  for (int i = 0; i < 100; ++i) {
    rank.handoff.leave();
    rank.handoff.enter();
  }
  await([&] { return rank.handoff.is_polled(); });
  usleep(100'000);  // whoever was woken besides comes in now
  rank.handoff.breathe();
  EXPECT_EQ(woken.load(), 1);
  stop = true;
  rank.handoff.leave();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rank.handoff.counters.late_wakes, 0u);
}

}  // namespace
}  // namespace headway::progress
