// Which failure is the first, and which processes a signal is ending.
#include "blame.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>

namespace headway::launcher {
namespace {

Failure abort_of(int rank) { return {rank, 3, false, "called MPI_Abort with code 3", ""}; }
Failure kill_of(int rank) { return {rank, 137, true, "was killed by signal 9", ""}; }

struct Jury {
  Blame blame;
  std::set<int> there = {0, 1, 2, 3};
  int64_t again_at = -1;
  void suspect(const Failure& failure, int64_t now, std::vector<int> dying) {
    blame.suspect(failure, now, [&] { return dying; });
  }
  bool is_final(int64_t now) {
    return blame.is_final(now, [this](int rank) { return there.contains(rank); }, again_at);
  }
};

TEST(Blame, FallsAtOnceWhereNobodyIsDying) {
  Jury jury;
  jury.suspect(abort_of(1), 1000, {});
  EXPECT_TRUE(jury.is_final(1000));
  EXPECT_EQ(jury.blame.failure()->rank, 1);
}

TEST(Blame, MovesToADeathThatWasUnderWay) {
  Jury jury;
  jury.suspect(abort_of(1), 1000, {0});
  EXPECT_FALSE(jury.is_final(1000));
  EXPECT_GT(jury.again_at, 1000);
  EXPECT_LT(jury.again_at, 1100);
  jury.there.erase(0);
  jury.suspect(kill_of(0), 1500, {});
  EXPECT_TRUE(jury.is_final(1500));
  EXPECT_EQ(jury.blame.failure()->rank, 0);
  EXPECT_EQ(jury.blame.failure()->code, 137);
}

TEST(Blame, StaysWhereALaterDeathFollows) {
  Jury jury;
  jury.suspect(abort_of(1), 1000, {0});
  jury.suspect(kill_of(2), 1100, {2});
  EXPECT_FALSE(jury.is_final(1100)) << "rank 0 is still dying";
  EXPECT_EQ(jury.blame.failure()->rank, 1);
  jury.there.erase(0);  // it ended well
  EXPECT_TRUE(jury.is_final(1200));
  EXPECT_EQ(jury.blame.failure()->rank, 1);
}

TEST(Blame, WaitsForTwoSecondsAtMost) {
  Jury jury;
  jury.suspect(abort_of(1), 1000, {0});
  EXPECT_FALSE(jury.is_final(2999));
  EXPECT_TRUE(jury.is_final(3000));
}

TEST(Blame, NobodyWaitsForTheSuspectItself) {
  Jury jury;
  jury.suspect(abort_of(1), 1000, {1});
  EXPECT_TRUE(jury.is_final(1000));
}

TEST(Blame, ADeathBySignalStandsAtOnce) {
  Jury jury;
  jury.suspect(kill_of(2), 1000, {0});
  EXPECT_TRUE(jury.is_final(1000));
  jury.suspect(kill_of(0), 1001, {});
  EXPECT_EQ(jury.blame.failure()->rank, 2);
}

// A child that does `what`, and is killed at the end.
struct Child {
  pid_t pid;
  explicit Child(void (*what)()) : pid(fork()) {
    if (pid == 0) {
      what();
      _exit(0);
    }
  }
  ~Child() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  bool comes_to(bool killed) const {
    for (int i = 0; i < 5000 && may_be_killed(pid) != killed; ++i) usleep(1000);
    return may_be_killed(pid) == killed;
  }
};

// As ps shows it; 0: not there.
char state_of(pid_t pid) {
  char state = 0;
  if (FILE* file = fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r")) {
    if (fscanf(file, "%*d %*s %c", &state) != 1) state = 0;
    fclose(file);
  }
  return state;
}

TEST(MayBeKilled, OneThatLivesIsNot) {
  const Child child([] { pause(); });
  EXPECT_FALSE(may_be_killed(child.pid));
  EXPECT_FALSE(may_be_killed(1 << 30));
}

TEST(MayBeKilled, OneThatWasNotWaitedForIs) {
  const Child child([] { raise(SIGKILL); });
  EXPECT_TRUE(child.comes_to(true));
}

TEST(MayBeKilled, OneWhoseFirstThreadHasEndedGoesOn) {
  const Child child([] {
    std::thread([] { pause(); }).detach();
    syscall(SYS_exit, 0);  // of this thread alone
  });
  for (int i = 0; i < 5000 && state_of(child.pid) != 'Z'; ++i) usleep(1000);
  ASSERT_EQ(state_of(child.pid), 'Z') << "its first thread never ended";
  EXPECT_FALSE(may_be_killed(child.pid));
  kill(child.pid, SIGKILL);
  EXPECT_TRUE(child.comes_to(true));
}

}  // namespace
}  // namespace headway::launcher
