// Litmus tests of the handoff: whatever comes while ownership changes hands must be dealt with, by
// the message thread or by a thread of the program, without waiting for luck. A lost wake would
// last for ever, so the limits are long and the rounds many.
#include "progress/handoff.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace headway::progress {
namespace {

constexpr uint64_t limit_ns = 5'000'000'000;  // a wake that takes longer is lost
constexpr uint64_t box_ns = 1'200'000'000;    // time for one test
constexpr uint32_t event_mail = 2, event_other = 4;

uint64_t base_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 1;
}

void spin_some(std::mt19937_64& random, unsigned most) {
  for (auto turns = random() % most; turns > 0; --turns) base::cpu_relax();
}

// A rank whose work is a mailbox in memory and a socket.
class Rank final : public Work {
 public:
  explicit Rank(bool with_thread) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets_), 0);
    EXPECT_EQ(handoff.start(this, &armed, sockets_[0], with_thread), Outcome::ok);
  }
  ~Rank() {
    handoff.stop();
    for (const int fd : sockets_) close(fd);
  }

  bool advance() override {
    if (!handoff.is_held() || busy_.exchange(true)) ++two_owners;
    bool moved = false;
    const uint64_t published = mail_.load(std::memory_order_acquire);
    if (published != taken_mail.load(std::memory_order_relaxed)) {
      taken_mail.store(published, std::memory_order_release);
      moved = true;
    }
    char bytes[64];
    const ssize_t n = read(sockets_[0], bytes, sizeof bytes);
    if (n > 0) {
      taken_bytes.fetch_add(uint64_t(n), std::memory_order_release);
      moved = true;
    }
    busy_ = false;
    if (after_look) after_look(*this);
    return moved;
  }
  void settle() override { ++settled; }
  uint32_t wanted() override { return event_mail; }
  void awake() override {}
  void thread_begins() override {}
  void faults() override {}
  bool is_awaited() override { return false; }

  // As a peer publishes, and as shm::Node::wake rings.
  void mail(uint64_t number) {
    mail_.store(number, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (armed.load(std::memory_order_relaxed) & event_mail && armed.exchange(0)) {
      handoff.bell().ring();
    }
  }
  void byte() { EXPECT_EQ(write(sockets_[1], "x", 1), 1); }

  void (*after_look)(Rank&) = nullptr;  // what happens just after a look that found nothing
  std::atomic<uint32_t> armed{0};
  Handoff handoff;
  std::atomic<uint64_t> taken_mail{0}, taken_bytes{0};
  std::atomic<int> two_owners{0};
  std::atomic<int> settled{0};

 private:
  std::atomic<uint64_t> mail_{0};
  std::atomic<bool> busy_{false};
  int sockets_[2] = {-1, -1};
};

// As a rank that waits: now and then long enough for the sockets to leave the sleepers' epoll.
void attend(Rank& rank, std::mt19937_64& random) {
  for (auto times = random() % 40; times > 0; --times) rank.handoff.attend();
}

bool reaches(const std::atomic<uint64_t>& value, uint64_t wanted) {
  const uint64_t start = base::now_ns();
  for (int turn = 0; value.load(std::memory_order_acquire) < wanted; ++turn) {
    if (turn > 200) {
      sched_yield();
    } else {
      base::cpu_relax();
    }
    if (turn % 64 == 0 && base::now_ns() - start > limit_ns) return false;
  }
  return true;
}

// Rounds in which the rank enters and leaves while something comes, and then stays outside: only
// the message thread can deal with it. Ends after `rounds` or when the time is up.
template <class Send>
uint64_t race(Rank& rank, uint64_t rounds, std::atomic<uint64_t>& taken, Send&& send) {
  const uint64_t seed = base_seed();
  std::atomic<uint64_t> round{0}, left{0};
  std::atomic<bool> stop{false};
  std::thread program([&] {
    std::mt19937_64 random(seed);
    for (uint64_t now = 1; !stop; ++now) {
      for (int turn = 0; round.load(std::memory_order_acquire) < now && !stop; ++turn) {
        if (turn > 200) sched_yield();
      }
      if (stop) return;
      for (auto visits = random() % 3 + 1; visits > 0; --visits) {
        spin_some(random, 200);
        const bool brief = random() % 2;
        if (brief) {
          rank.handoff.enter_briefly();
          spin_some(random, 50);
        } else {
          rank.handoff.enter();
        }
        if (!brief || random() % 4 == 0) {
          rank.handoff.stay();
          if (random() % 4 == 0) rank.advance();
          if (random() % 4 == 0) attend(rank, random);
        }
        spin_some(random, 50);
        rank.handoff.leave();
      }
      left.store(now, std::memory_order_release);
    }
  });
  rank.handoff.enter();
  rank.handoff.pending = 1;
  rank.handoff.leave();
  std::mt19937_64 random(seed + 1);
  const uint64_t end = base::now_ns() + box_ns;
  uint64_t now = 1;
  for (; now <= rounds && base::now_ns() < end; ++now) {
    round.store(now, std::memory_order_release);
    spin_some(random, 600);
    send(now);
    if (!reaches(left, now)) {
      ADD_FAILURE() << "the program hangs, round " << now << ", seed " << seed;
      break;
    }
    if (!reaches(taken, now)) {
      ADD_FAILURE() << "a wake was lost in round " << now << ", seed " << seed;
      break;
    }
  }
  stop = true;
  program.join();
  rank.handoff.enter();
  rank.handoff.pending = 0;
  rank.handoff.leave();
  EXPECT_EQ(rank.two_owners.load(), 0);
  return now - 1;
}

TEST(Handoff, NoMailIsLostWhileTheRankLeaves) {
  Rank rank(true);
  const uint64_t rounds = race(rank, 200'000, rank.taken_mail, [&](uint64_t n) { rank.mail(n); });
  RecordProperty("rounds", int(rounds));
  EXPECT_GT(rounds, 20u);  // on a crowded machine a round takes several time slices
}

// The one shot of the sockets may have been taken when the rank leaves.
TEST(Handoff, NoSocketEventIsLostWhileTheRankLeaves) {
  Rank rank(true);
  const uint64_t rounds = race(rank, 200'000, rank.taken_bytes, [&](uint64_t) { rank.byte(); });
  RecordProperty("rounds", int(rounds));
  EXPECT_GT(rounds, 20u);  // on a crowded machine a round takes several time slices
}

TEST(Handoff, MailAndSocketEventsMixed) {
  Rank rank(true);
  std::mt19937_64 random(base_seed() + 5);
  uint64_t bytes = 0;
  race(rank, 200'000, rank.taken_mail, [&](uint64_t n) {
    if (random() % 2) {
      rank.byte();
      ++bytes;
    }
    rank.mail(n);
    if (random() % 2) {
      rank.byte();
      ++bytes;
    }
  });
  // The last bytes came while pending was one; the thread was told of them then.
  EXPECT_TRUE(reaches(rank.taken_bytes, bytes));
}

// Nobody of the program is inside at all: the thread alone, arming and being rung.
TEST(Handoff, TheThreadAloneMissesNothing) {
  Rank rank(true);
  rank.handoff.enter();
  rank.handoff.pending = 1;
  rank.handoff.leave();
  std::mt19937_64 random(base_seed());
  const uint64_t end = base::now_ns() + box_ns;
  for (uint64_t now = 1; now <= 200'000 && base::now_ns() < end; ++now) {
    rank.mail(now);
    if (random() % 4 == 0) rank.byte();
    ASSERT_TRUE(reaches(rank.taken_mail, now)) << "round " << now;
    spin_some(random, 400);
  }
  EXPECT_EQ(rank.two_owners.load(), 0);
  rank.handoff.enter();
  EXPECT_GT(rank.handoff.counters.arms, 0u);
  rank.handoff.leave();
}

// A rank without pending work is not to be woken, and nothing is armed.
TEST(Handoff, WithoutPendingWorkNothingIsArmed) {
  Rank rank(true);
  rank.handoff.enter();
  rank.handoff.leave();
  EXPECT_EQ(rank.armed.load(), 0u);
  EXPECT_EQ(rank.handoff.counters.arms, 0u);
  rank.mail(1);
  usleep(20'000);
  EXPECT_EQ(rank.taken_mail.load(), 0u);
}

// Nor one whose operations only wait for an answer that moves nothing else.
TEST(Handoff, PassiveWorkAloneArmsNothing) {
  Rank rank(true);
  rank.handoff.enter();
  rank.handoff.pending = rank.handoff.passive = 2;
  rank.handoff.leave();
  EXPECT_EQ(rank.armed.load(), 0u);
  rank.handoff.enter();
  rank.handoff.pending = 3;
  rank.handoff.leave();
  EXPECT_NE(rank.armed.load(), 0u);
  rank.handoff.enter();
  rank.handoff.pending = rank.handoff.passive = 0;
  rank.handoff.leave();
}

TEST(Handoff, WithoutAThreadNothingIsArmed) {
  Rank rank(false);
  rank.handoff.enter();
  rank.handoff.pending = 3;
  rank.handoff.leave();
  EXPECT_EQ(rank.armed.load(), 0u);
  rank.handoff.enter();
  rank.handoff.pending = 0;
  rank.handoff.leave();
}

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
      for (int turn = 0; asked.load(std::memory_order_acquire) < now && !stop; ++turn) {
        if (turn > 200) sched_yield();
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

// The same when the rank leaves instead of sleeping.
TEST(Handoff, TheThreadDoesNotEatTheLeaversRing) {
  Rank rank(true);
  for (uint64_t now = 1; now <= 5; ++now) {
    rank.handoff.enter();
    rank.handoff.pending = 1;
    rank.handoff.leave();
    rank.handoff.enter();
    rank.byte();
    usleep(10'000);  // the thread finds the engine taken
    rank.advance();
    static uint64_t number;
    number = now;
    rank.after_look = [](Rank& self) {
      self.after_look = nullptr;
      self.mail(number);
      usleep(10'000);
    };
    rank.handoff.leave();
    ASSERT_TRUE(reaches(rank.taken_mail, now)) << "round " << now;
  }
  rank.handoff.enter();
  rank.handoff.pending = 0;
  rank.handoff.leave();
}

// The same after a brief call, which leaves the word as it is.
TEST(Handoff, TheThreadDoesNotEatTheBriefLeaversRing) {
  Rank rank(true);
  for (uint64_t now = 1; now <= 5; ++now) {
    rank.handoff.enter();
    rank.handoff.pending = 1;
    rank.handoff.leave();
    rank.handoff.enter_briefly();
    rank.mail(now);
    usleep(10'000);  // the thread finds the engine taken
    rank.handoff.leave();
    ASSERT_TRUE(reaches(rank.taken_mail, now)) << "round " << now;
    rank.handoff.enter_briefly();
    rank.byte();
    usleep(10'000);
    rank.handoff.leave();
    ASSERT_TRUE(reaches(rank.taken_bytes, now)) << "round " << now;
  }
  rank.handoff.enter();
  rank.handoff.pending = 0;
  rank.handoff.leave();
}

// What peers look at is not written while nothing comes.
TEST(Handoff, BriefCallsLeaveTheWordAsItIs) {
  Rank rank(true);
  rank.handoff.enter();
  rank.handoff.pending = 1;
  rank.handoff.leave();
  const uint64_t arms = rank.handoff.counters.arms;
  for (int i = 0; i < 100; ++i) {
    rank.handoff.enter_briefly();
    EXPECT_EQ(rank.armed.load(), event_mail);
    rank.handoff.leave();
  }
  EXPECT_EQ(rank.handoff.counters.arms, arms);
  rank.handoff.enter_briefly();
  rank.handoff.stay();
  EXPECT_EQ(rank.armed.load(), 0u);
  rank.handoff.leave();
  EXPECT_EQ(rank.handoff.counters.arms, arms + 1);
  EXPECT_EQ(rank.armed.load(), event_mail);
  rank.handoff.enter();
  rank.handoff.pending = 0;
  rank.handoff.leave();
}

// What cannot move at once (a copy that another rank helps with) is to be looked at again.
TEST(Handoff, TheThreadSettlesBeforeItSleeps) {
  Rank rank(true);
  rank.handoff.enter();
  rank.handoff.pending = 1;
  rank.handoff.leave();
  for (uint64_t now = 1; now < 100 && !HasFailure(); ++now) {
    const int before = rank.settled;
    rank.mail(now);
    ASSERT_TRUE(reaches(rank.taken_mail, now));
    const uint64_t start = base::now_ns();
    while (rank.armed.load() == 0 && base::now_ns() - start < limit_ns) sched_yield();
    EXPECT_GT(rank.settled.load(), before);
  }
  rank.handoff.enter();
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
      while (rank.handoff.is_polled()) rank.handoff.park();
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

struct Called : UserCall {
  Rank* rank = nullptr;
  std::thread::id runner;
  bool held_while_running = true;
  bool held_at_end = false;
};

TEST(Handoff, UserCallsRunWithoutTheEngineAndFinishWithIt) {
  Rank rank(true);
  Called calls[3];
  rank.handoff.enter();
  for (Called& call : calls) {
    call.rank = &rank;
    call.run = [](UserCall* base) {
      auto* self = static_cast<Called*>(base);
      self->runner = std::this_thread::get_id();
      self->held_while_running = self->rank->handoff.is_held();
    };
    call.finished = [](UserCall* base) {
      auto* self = static_cast<Called*>(base);
      self->held_at_end = self->rank->handoff.is_held();
    };
    rank.handoff.user_calls.push_back(&call);
  }
  EXPECT_TRUE(rank.handoff.run_user_calls());
  EXPECT_FALSE(rank.handoff.run_user_calls());
  rank.handoff.leave();
  for (const Called& call : calls) {
    EXPECT_EQ(call.runner, std::this_thread::get_id());
    EXPECT_FALSE(call.held_while_running);
    EXPECT_TRUE(call.held_at_end);
  }
}

TEST(Handoff, StartAndStopManyTimes) {
  for (int i = 0; i < 100; ++i) {
    Rank rank(true);
    rank.handoff.enter();
    rank.handoff.pending = i % 2;
    rank.handoff.leave();
    if (i % 3 == 0) rank.mail(1);
    if (i % 5 == 0) rank.byte();
  }
}

}  // namespace
}  // namespace headway::progress
