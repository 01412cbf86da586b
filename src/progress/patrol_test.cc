// The patrol: a rank that is always back at once leaves its doorbell alone, and is looked after all
// the same.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "progress/handoff_test_rank.h"

namespace headway::progress {
namespace {

constexpr uint32_t after = 50;

void sleep_us(uint64_t us) {
  const uint64_t end = base::now_ns() + us * 1000;
  while (base::now_ns() < end) usleep(100);
}

// Leaves so often that the thread goes on patrol, and stays outside.
void leave_often(Rank& rank) {
  // A stranger on the core makes an absence long; then it begins anew.
  for (uint32_t i = 0; i < 100 * after && rank.handoff.counters.patrols == 0; ++i) {
    rank.handoff.enter();
    rank.handoff.pending = 1;
    rank.handoff.leave();
  }
  ASSERT_EQ(rank.handoff.counters.patrols, 1u);
}

// True if the system took no part of it for others.
bool stay(uint64_t ns) {
  const uint64_t start = base::now_ns();
  while (base::now_ns() - start < ns) base::cpu_relax();
  return base::now_ns() - start < 2 * ns;
}

// By itself, without a thread that ends it, too.
TEST(Patrol, IsEarnedByShortAbsencesAndLostByALongOne) {
  Patrol patrol;
  patrol.start(2);
  usleep(1000);  // the length of a tick is told by it
  for (int i = 0; i < 1000 && !patrol.is_due(); ++i) {
    patrol.leaves();
    EXPECT_TRUE(patrol.is_away());
    patrol.comes();
  }
  ASSERT_TRUE(patrol.is_due());
  patrol.begin();
  patrol.leaves();
  const uint64_t start = base::now_ns();
  while (base::now_ns() - start < 2 * Patrol::long_times * Patrol::short_ns) base::cpu_relax();
  EXPECT_TRUE(patrol.take_overdue());
  patrol.comes();
  EXPECT_FALSE(patrol.is_on());
  EXPECT_FALSE(patrol.is_due());
}

// Calls for a moment, one after the other: each counts as an end of an absence, and now and then
// one of them is to look.
TEST(Patrol, ARowOfLeavesIsCountedAndInterruptedForALook) {
  Patrol patrol;
  patrol.start(2);
  EXPECT_FALSE(patrol.leaves_again()) << "it has not left yet";
  patrol.leaves();
  ASSERT_TRUE(patrol.is_away());
  EXPECT_TRUE(patrol.note_look());
  EXPECT_FALSE(patrol.note_look()) << "it has not left since";
  uint32_t in_a_row = 1, looks = 0;
  for (int i = 0; i < 1000; ++i) {
    if (patrol.leaves_again()) {
      EXPECT_FALSE(patrol.is_look_due());
      ++in_a_row;
    } else {
      patrol.leaves();
      EXPECT_TRUE(patrol.is_look_due());
      EXPECT_EQ(in_a_row, Patrol::look_every - 1);
      in_a_row = 0;
      ++looks;
    }
  }
  EXPECT_EQ(looks, 1000 / Patrol::look_every);
  EXPECT_TRUE(patrol.note_look()) << "the last leave is one as others";
  patrol.comes();
  EXPECT_FALSE(patrol.leaves_again()) << "it is back";
}

// One that so many short absences have earned.
Patrol earned(uint32_t enough) {
  Patrol patrol;
  patrol.start(enough);
  usleep(1000);
  for (int i = 0; i < 100'000 && !patrol.is_due(); ++i) {
    patrol.leaves();
    patrol.comes();
  }
  EXPECT_TRUE(patrol.is_due());
  return patrol;
}

// Returns how many stays of `ns` it takes until a patrol that was earned is lost, or `most`.
int stays_until_lost(uint64_t ns, int short_ones_between, int most) {
  Patrol patrol = earned(160);
  for (int stays = 0; stays < most; ++stays) {
    if (!patrol.is_due()) return stays;
    for (int tries = 0; tries < 100; ++tries) {
      Patrol before = patrol;
      const uint64_t start = base::now_ns();
      patrol.leaves();
      stay(ns);
      patrol.comes();
      if (base::now_ns() - start < 2 * ns) break;  // no part of it was for others
      patrol = before;
    }
    for (int i = 0; i < short_ones_between; ++i) {
      Patrol before = patrol;
      const uint64_t start = base::now_ns();
      patrol.leaves();
      patrol.comes();
      if (base::now_ns() - start > Patrol::short_ns / 2) patrol = before;
    }
  }
  return most;
}

// Whoever is woken on this core may have it for some time: that is no absence, where it is seldom.
TEST(Patrol, AFewThatWereALittleLongerDoNotEndIt) {
  constexpr uint64_t longer = 3 * Patrol::short_ns;
  EXPECT_EQ(stays_until_lost(longer, 100, 50), 50);
  EXPECT_LT(stays_until_lost(longer, 1, 50), 20);
  EXPECT_EQ(stays_until_lost(2 * Patrol::long_times * Patrol::short_ns, 100, 50), 1);
}

// It came back at once, and found the engine taken by who worked for it.
TEST(Patrol, ToWaitForTheEngineIsNoAbsence) {
  bool stays = false;
  for (int tries = 0; tries < 20 && !stays; ++tries) {
    Patrol patrol = earned(2);
    patrol.leaves();
    const uint64_t came = base::ticks();
    stay(2 * Patrol::long_times * Patrol::short_ns);
    patrol.came_at(came);
    patrol.comes();
    stays = patrol.is_due();
    // That was told of this absence alone.
    patrol.leaves();
    stay(2 * Patrol::long_times * Patrol::short_ns);
    patrol.comes();
    EXPECT_FALSE(patrol.is_due());
  }
  EXPECT_TRUE(stays);
}

// A call for a moment found the engine taken, too; the absence after it is one by itself.
TEST(Patrol, ToWaitForTheEngineInACallForAMomentHidesNoLongAbsence) {
  Patrol patrol = earned(2);
  patrol.begin();
  patrol.leaves();
  patrol.came_at(base::ticks());
  patrol.leaves();
  stay(3 * Patrol::long_times * Patrol::short_ns);
  EXPECT_TRUE(patrol.take_overdue());
  patrol.comes();
  EXPECT_FALSE(patrol.is_due());
}

// A program that computes after each hundred calls would wait for a look each time.
TEST(Patrol, WhoIsSoonAwayForLongEarnsItMoreDearly) {
  constexpr uint32_t enough = 16;
  Patrol patrol;
  patrol.start(enough);
  usleep(1000);
  const auto short_ones_until_due = [&] {
    uint32_t count = 0;
    for (; count < 100'000 && !patrol.is_due(); ++count) {
      patrol.leaves();
      patrol.comes();
    }
    return count;
  };
  const auto stay_long = [&] {
    patrol.leaves();
    stay(2 * Patrol::long_times * Patrol::short_ns);
    patrol.comes();
    EXPECT_FALSE(patrol.is_due());
  };
  EXPECT_GE(short_ones_until_due(), enough);
  for (uint32_t needed = 2 * enough; needed <= Patrol::dearest_times * enough; needed *= 2) {
    stay_long();
    EXPECT_GE(short_ones_until_due(), needed);
  }
  stay_long();
  // One that interrupts the count asks for more of them, so the fewest of some rounds count.
  uint32_t fewest = 100'000;
  for (int round = 0; round < 20 && fewest >= 2 * enough; ++round) {
    (void)short_ones_until_due();
    for (uint32_t i = 0; i < 2 * Patrol::soon_times * Patrol::dearest_times * enough; ++i) {
      patrol.leaves();
      patrol.comes();
    }
    stay_long();
    fewest = std::min(fewest, short_ones_until_due());
    stay_long();
  }
  EXPECT_LT(fewest, 2 * enough);
}

// Calls for a moment on the way count: the mean is judged. Those before a look of the thread do not
// hide what comes after it.
TEST(Patrol, ManyShortAbsencesAreShort) {
  Patrol patrol;
  patrol.start(1000);
  usleep(1000);
  patrol.leaves();
  patrol.comes();
  patrol.begin();
  const uint64_t start = base::now_ns();
  uint32_t leaves = 0;
  while (base::now_ns() - start < 10 * Patrol::short_ns) {
    patrol.leaves();
    ++leaves;
  }
  EXPECT_TRUE(leaves < 20 || !patrol.take_overdue());
  (void)patrol.note_look();
  const uint64_t look = base::now_ns();
  while (base::now_ns() - look < 3 * Patrol::short_ns) base::cpu_relax();
  EXPECT_TRUE(patrol.take_overdue());
  EXPECT_FALSE(patrol.note_look());
}

TEST(Patrol, LongAbsencesEarnNone) {
  Rank rank(true, after);
  for (uint32_t i = 0; i < 3 * after; ++i) {
    rank.handoff.enter();
    rank.handoff.pending = 1;
    rank.handoff.leave();
    const uint64_t start = base::now_ns();
    while (base::now_ns() - start < 3 * Patrol::short_ns) base::cpu_relax();
  }
  EXPECT_EQ(rank.handoff.counters.patrols, 0u);
}

// What it looks at before it is gone may be copies of a long message: that is no absence.
TEST(Patrol, LongLooksOnTheWayOutAreNone) {
  Rank rank(true, after);
  rank.after_look = [](Rank& self) {
    if (self.handoff.counters.patrols) return;
    const uint64_t start = base::now_ns();
    while (base::now_ns() - start < 3 * Patrol::short_ns) base::cpu_relax();
  };
  leave_often(rank);
}

// Each of the calls for a moment was as short a stay as those that are judged one by one.
TEST(Patrol, AllThatAreJudgedTogetherCount) {
  Patrol patrol;
  patrol.start(100);
  usleep(1000);
  int rounds = 0;
  for (; rounds < 50 && !patrol.is_due(); ++rounds) {
    for (int i = 0; i < 10; ++i) patrol.leaves();
    patrol.comes();
  }
  EXPECT_LT(rounds, 50);
}

// A rank takes a descriptor for it only where there may be one.
TEST(Patrol, WithoutItThereIsNoTimerForIt) {
  const auto descriptors_of = [](uint32_t patrol_after) {
    const Rank rank(true, patrol_after);
    int count = 0;
    for (int fd = 0; fd < 1000; ++fd) count += fcntl(fd, F_GETFD) >= 0;
    return count;
  };
  EXPECT_EQ(descriptors_of(0) + 1, descriptors_of(after));
}

TEST(Patrol, NobodyRingsForARankThatIsAlwaysBackAtOnce) {
  Rank rank(true, after);
  leave_often(rank);
  // Unless the system takes the core away for long just then.
  bool unarmed = rank.armed.load() == 0;
  for (int tries = 0; tries < 1000 && !unarmed; ++tries) {
    rank.handoff.enter();
    rank.handoff.leave();
    unarmed = rank.armed.load() == 0;
  }
  EXPECT_TRUE(unarmed);
}

TEST(Patrol, ARankThatStaysAwayIsWorkedForAndGuardedAgain) {
  Rank rank(true, after);
  leave_often(rank);
  rank.mail(1);
  EXPECT_TRUE(reaches(rank.taken_mail, 1));
  const uint64_t start = base::now_ns();
  while (rank.armed.load() == 0 && base::now_ns() - start < limit_ns) usleep(100);
  EXPECT_NE(rank.armed.load(), 0u);
  rank.mail(2);
  EXPECT_TRUE(reaches(rank.taken_mail, 2));
}

TEST(Patrol, OneLongAbsenceEndsIt) {
  Rank rank(true, after);
  leave_often(rank);
  sleep_us(5000);
  rank.handoff.enter();
  rank.handoff.leave();
  EXPECT_NE(rank.armed.load(), 0u);
}

// A rank that tests in a loop leaves copies to the thread, and is always back at once.
TEST(Patrol, WhereACopyLiesBegunTheThreadIsToBeWoken) {
  Rank rank(true, after);
  leave_often(rank);
  rank.has_begun = true;
  const uint64_t arms = rank.handoff.counters.arms;
  for (uint32_t i = 0; i < Patrol::look_every; ++i) {
    rank.handoff.enter();
    rank.handoff.leave();
  }
  EXPECT_GT(rank.handoff.counters.arms, arms);
}

// The clock is read for absences alone.
TEST(Patrol, OneThatIsSwitchedOffJudgesNoAbsence) {
  Patrol patrol;
  patrol.start(0);
  patrol.leaves();
  EXPECT_FALSE(patrol.is_away());
}

TEST(Patrol, NeverIfNotAllowed) {
  Rank rank(true, 0);
  for (uint32_t i = 0; i < 100 * after; ++i) {
    rank.handoff.enter();
    rank.handoff.pending = 1;
    rank.handoff.leave();
  }
  EXPECT_EQ(rank.handoff.counters.patrols, 0u);
  EXPECT_NE(rank.armed.load(), 0u);
}

// The clock must not wake a process that has nothing to do, for ever.
TEST(Patrol, ItsClockStopsWhereNothingIsPending) {
  Rank rank(true, after);
  leave_often(rank);
  rank.handoff.enter();
  rank.handoff.pending = 0;
  rank.handoff.leave();
  uint64_t before = 0, now = 1;
  for (int tries = 0; tries < 100 && before != now; ++tries) {
    before = rank.handoff.thread_ns();
    sleep_us(20'000);
    now = rank.handoff.thread_ns();
  }
  EXPECT_EQ(before, now);
}

// A program may start operations for long and wait for none: what comes is seen meanwhile.
TEST(Patrol, ARankThatNeverWaitsLooksNowAndThen) {
  Rank rank(true, after);
  leave_often(rank);
  rank.mail(1);
  for (uint32_t i = 0; i < Patrol::look_every; ++i) {
    rank.handoff.enter();
    rank.handoff.leave();
  }
  EXPECT_EQ(rank.taken_mail.load(), 1u);
}

// A look takes the core from a rank that waits in MPI. When it leaves it is soon looked after
// again.
TEST(Patrol, WhoIsInsideIsLookedAtSeldomAndWhoLeavesSoon) {
  constexpr uint64_t soon_ns = PatrolTimer::slow_tick_us * 250;
  uint64_t fewest = ~uint64_t(0);
  int counted = 0;  // of the others somebody else had a core
  for (int round = 0; round < 150 && counted < 30 && fewest > soon_ns && !HasFailure(); ++round) {
    Rank rank(true, after);
    leave_often(rank);
    rank.handoff.enter();
    const uint64_t start = base::now_ns(), looks = rank.handoff.counters.patrol_looks;
    sleep_us(10 * PatrolTimer::slow_tick_us);
    const uint64_t seen = rank.handoff.counters.patrol_looks;
    EXPECT_LE(seen - looks, (base::now_ns() - start) / 1000 / PatrolTimer::slow_tick_us + 2);
    // It leaves just after a look: without being told, the next one is a slow one.
    uint64_t last = base::now_ns(), longest_gap = 0;
    const auto mind_gaps = [&] {
      const uint64_t now = base::now_ns();
      longest_gap = std::max(longest_gap, now - last);
      last = now;
    };
    while (rank.handoff.counters.patrol_looks == seen && last - start < limit_ns) mind_gaps();
    const bool alone = longest_gap < 500'000 && stay(200'000);  // until it is done with its look
    rank.handoff.leave();
    const uint64_t left = base::now_ns();
    const bool is_on = rank.armed.load() == 0 && rank.handoff.counters.patrols == 1;
    while (rank.armed.load() == 0 && base::now_ns() - left < limit_ns) base::cpu_relax();
    ASSERT_NE(rank.armed.load(), 0u) << "nobody works for it";
    if (alone && is_on) {
      fewest = std::min(fewest, base::now_ns() - left);
      ++counted;
    }
    rank.handoff.enter();
    rank.handoff.pending = 0;
    rank.handoff.leave();
  }
  if (fewest == ~uint64_t(0)) GTEST_SKIP() << "never alone on a core when it left";
  EXPECT_LE(fewest, soon_ns);
}

}  // namespace
}  // namespace headway::progress
