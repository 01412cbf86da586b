// Litmus tests of the handoff: whatever comes while ownership changes hands must be dealt with, by
// the message thread or by a thread of the program, without waiting for luck. A lost wake would
// last for ever, so the limits are long and the rounds many.
#include <random>
#include <thread>

#include "progress/handoff_test_rank.h"

namespace headway::progress {
namespace {

// Rounds in which the rank enters and leaves while something comes, and then stays outside: only
// the message thread can deal with it. Ends after `rounds`, or, behind a few, when the time is up.
constexpr uint64_t fewest_rounds = 21;
template <class Send>
uint64_t race(Rank& rank, uint64_t rounds, std::atomic<uint64_t>& taken, Send&& send) {
  const uint64_t seed = base_seed();
  std::atomic<uint64_t> round{0}, left{0};
  std::atomic<bool> stop{false};
  std::thread program([&] {
    std::mt19937_64 random(seed);
    for (uint64_t now = 1; !stop; ++now) {
      for (int spins = 0; round.load(std::memory_order_acquire) < now && !stop; ++spins) {
        if (spins > 200) sched_yield();
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
  // On a crowded machine a round takes several time slices.
  const uint64_t start = base::now_ns();
  uint64_t now = 1;
  for (; now <= rounds; ++now) {
    if (base::now_ns() - start > (now <= fewest_rounds ? 20 * box_ns : box_ns)) break;
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
  EXPECT_GE(rounds, fewest_rounds);
}

// Whoever leaves while bytes keep coming, in pieces that take so long: how often it looks for more.
// The message thread has been woken before by them, and has found the engine taken.
int looks_of_who_leaves(uint64_t piece_ns) {
  static std::atomic<uint64_t> until;
  static std::atomic<int> looks;
  static uint64_t lasts;
  static std::thread::id leaver;
  lasts = piece_ns;
  leaver = std::this_thread::get_id();
  Rank rank(true);
  rank.handoff.enter();
  rank.handoff.pending = 1;
  rank.handoff.leave();
  rank.handoff.enter();
  rank.handoff.stay();
  const uint64_t before = rank.handoff.counters.thread_busy, began = base::now_ns();
  rank.byte();
  while (rank.handoff.counters.thread_busy == before && base::now_ns() - began < limit_ns) {
    sched_yield();
  }
  EXPECT_GT(rank.handoff.counters.thread_busy, before);
  until = base::now_ns() + 8 * limit_ns;
  looks = 0;
  rank.after_look = [](Rank& streams) {
    const uint64_t look = base::now_ns();
    if (look > until) return;
    if (std::this_thread::get_id() == leaver) ++looks;
    streams.byte();
    while (base::now_ns() - look < lasts) base::cpu_relax();
  };
  rank.handoff.leave();
  const int looked = looks;
  EXPECT_TRUE(reaches(rank.taken_bytes, uint64_t(looked) + 10)) << "nobody went on";
  for (uint64_t time = 1; time <= 3; ++time) {
    Rank::tell(rank.told_faults);
    Rank::tell(rank.told_hosts);
    EXPECT_TRUE(reaches(rank.faults_seen, time)) << "who touches a page waits for all of it";
    EXPECT_TRUE(reaches(rank.hosts_seen, time));
  }
  EXPECT_LT(base::now_ns(), until) << "all has come meanwhile";
  until = 0;
  rank.handoff.enter();
  rank.after_look = nullptr;
  rank.handoff.pending = 0;
  rank.handoff.leave();
  EXPECT_EQ(rank.two_owners.load(), 0);
  return looked;
}
// It could be held for as long as they come: each time that it had armed the thread for them they
// woke it, too soon.
TEST(Handoff, WhoLeavesIsNotHeldByWhatKeepsComing) {
  for (int time = 0; time < 5; ++time) EXPECT_LE(looks_of_who_leaves(2'000), 5);
}
TEST(Handoff, WhoLeavesIsNotHeldByLargePieces) {
  for (int time = 0; time < 5; ++time) EXPECT_LE(looks_of_who_leaves(150'000), 1);
}

// Bursts of bytes, or of what nobody rings for, so that whoever leaves lets the message thread go
// on, and that looks at what is watched between two turns; two threads of the program, each of
// which may come while the other one leaves, and arm while the message thread works.
TEST(Handoff, NothingIsLostWhileDataComeInBursts) {
  Rank rank(true);
  static std::atomic<int> burst;
  static std::atomic<bool> in_bytes;
  burst = 0;
  rank.after_look = [](Rank& streams) {
    const int left = burst.fetch_sub(1);
    if (left <= 0) {
      burst = 0;
      return;
    }
    if (in_bytes) {
      streams.byte();
    } else {
      streams.unrung = 1;
    }
    const uint64_t look = base::now_ns();
    while (base::now_ns() - look < 40'000) base::cpu_relax();
  };
  std::atomic<bool> stop{false};
  std::atomic<int> visits{0};  // of the other thread; then it stays outside, and rescues nobody
  std::thread other([&] {
    std::mt19937_64 random(base_seed() + 2);
    while (!stop) {
      if (visits <= 0) {
        sched_yield();
        continue;
      }
      --visits;
      random() % 2 ? rank.handoff.enter_briefly() : rank.handoff.enter();
      if (random() % 2) {
        rank.handoff.stay();
        if (random() % 2) attend(rank, random);
      }
      rank.handoff.leave();
      if (random() % 2) usleep(useconds_t(random() % 400));
    }
  });
  std::mt19937_64 random(base_seed() + 3);
  const uint64_t rounds = race(rank, 20'000, rank.taken_mail, [&](uint64_t n) {
    in_bytes = random() % 2;
    burst = int(random() % 16);
    visits = int(random() % 4);
    if (random() % 2) rank.byte();
    if (random() % 2) usleep(useconds_t(random() % 400));
    rank.mail(n);
  });
  stop = true;
  other.join();
  EXPECT_GE(rounds, fewest_rounds);
  EXPECT_GT(rank.handoff.counters.self_rings, 0u);
}

// After one or two short absences nobody rings: the thread looks by the clock, or is armed again.
TEST(Handoff, NoMailAndNoSocketEventIsLostWhileTheThreadIsOnPatrol) {
  for (const uint32_t after : {1, 2}) {
    Rank rank(true, after);
    race(rank, 2000, rank.taken_mail, [&](uint64_t n) { rank.mail(n); });
    EXPECT_GT(rank.handoff.counters.patrols, 0u);
    Rank other(true, after);
    race(other, 2000, other.taken_bytes, [&](uint64_t) { other.byte(); });
    EXPECT_GT(other.handoff.counters.patrols, 0u);
  }
}

// The one shot of the sockets may have been taken when the rank leaves.
TEST(Handoff, NoSocketEventIsLostWhileTheRankLeaves) {
  Rank rank(true);
  const uint64_t rounds = race(rank, 200'000, rank.taken_bytes, [&](uint64_t) { rank.byte(); });
  RecordProperty("rounds", int(rounds));
  EXPECT_GE(rounds, fewest_rounds);
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

// The narrow case, made wide: the bell rings after the last look of a rank that leaves, and the
// message thread wakes for it while the rank still owns the engine. It must leave the ring to it.
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
TEST(Handoff, TheThreadHandsOnBeforeItSleeps) {
  Rank rank(true);
  rank.handoff.enter();
  rank.handoff.pending = 1;
  rank.handoff.leave();
  for (uint64_t now = 1; now < 100 && !HasFailure(); ++now) {
    const int before = rank.handed_on;
    rank.mail(now);
    ASSERT_TRUE(reaches(rank.taken_mail, now));
    const uint64_t start = base::now_ns();
    while (rank.armed.load() == 0 && base::now_ns() - start < limit_ns) sched_yield();
    EXPECT_GT(rank.handed_on.load(), before);
  }
  rank.handoff.enter();
  rank.handoff.pending = 0;
  rank.handoff.leave();
}

// The thread that a leaver calls must not find the engine taken, also where both share a core: the
// leaver would start again, call again, and not get away.
TEST(Handoff, WhoCallsTheThreadGetsAway) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  {
    Rank rank(true);
    static thread_local bool calls;
    calls = true;
    rank.in_hand_on = [](Rank& self) {
      if (calls) self.handoff.call_thread();
    };
    constexpr uint64_t rounds = 200;
    for (uint64_t now = 1; now <= rounds; ++now) {
      rank.handoff.enter();
      rank.handoff.pending = 1;
      rank.handoff.leave();
      const uint64_t start = base::now_ns();
      while (rank.handoff.counters.thread_wakes < now && base::now_ns() - start < limit_ns) {
        sched_yield();
      }
      ASSERT_GE(rank.handoff.counters.thread_wakes, now) << "the thread was not called";
    }
    EXPECT_LT(rank.handoff.counters.thread_busy, rounds / 10);
    EXPECT_LT(rank.handoff.counters.arms, 3 * rounds);
    rank.handoff.enter();
    rank.handoff.pending = 0;
    rank.handoff.leave();
  }
  sched_setaffinity(0, sizeof all, &all);
}

struct Called : UserCall {
  Rank* rank = nullptr;
  std::thread::id runner;
  bool held_while_running = true;
  bool held_at_end = false;
};

// What it was to be reminded of while it is away it does itself when it is back; anything else it
// may not know of.
TEST(Handoff, ARankThatIsBackForgetsWhatItIsToBeRemindedOfWhileAway) {
  using While = Handoff::While;
  const auto wakes_of = [](std::initializer_list<While> reminders, uint64_t wanted) {
    Rank rank(true);
    rank.handoff.enter();
    rank.handoff.pending = 1;
    for (const While on : reminders) rank.handoff.remind(20'000, on);
    rank.handoff.leave();
    rank.handoff.enter();
    usleep(60'000);
    const uint64_t start = base::now_ns();
    while (rank.handoff.counters.thread_wakes < wanted && base::now_ns() - start < limit_ns) {
      usleep(1000);
    }
    rank.handoff.pending = 0;
    rank.handoff.leave();
    rank.handoff.enter();  // with the thread
    rank.handoff.leave();
    return uint64_t(rank.handoff.counters.thread_wakes);
  };
  EXPECT_GE(wakes_of({While::always}, 1), 1u);
  EXPECT_GE(wakes_of({While::away, While::always}, 1), 1u);
  EXPECT_GE(wakes_of({While::always, While::away}, 1), 1u);
  // A core that is taken away for 20 ms is rare.
  uint64_t fewest = 1;
  for (int round = 0; round < 20 && fewest; ++round) fewest = wakes_of({While::away}, 0);
  EXPECT_EQ(fewest, 0u);
}

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
