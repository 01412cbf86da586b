// Two ranks that are not bound, on one core at first, beside two who compute: they part and
// stay apart, for each needs the other to run. The system alone keeps them together, since who
// sleeps most of the time weighs nothing, and a sleeper is woken where its waker runs.
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

#include "check.h"

namespace {

bool has_cores = false;  // more than one
constexpr int rounds = 5;
// Longer than ranks that were brought together keep from parting again.
constexpr double round_us = 1.2e6;
// Of the time: a hundredth is usual; where nobody parts, a tenth to all of it.
constexpr double most_together = 0.07;

double now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) * 1e6 + double(t.tv_nsec) * 1e-3;
}

// Whatever the launcher chose. False if there is but one core.
bool runs_anywhere() {
  cpu_set_t all;
  memset(&all, 0xff, sizeof all);
  return sched_setaffinity(0, sizeof all, &all) == 0 &&
         sched_getaffinity(0, sizeof all, &all) == 0 && CPU_COUNT(&all) > 1;
}

// The first that there is, at this moment.
void go_to_a_core() {
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) break;
  }
  runs_anywhere();
}

// In a session of its own, as what others run on a machine: to the system that is another group. It
// must not outlive this rank, whatever ends it.
pid_t start_stranger() {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(60);
  setsid();
  for (volatile unsigned i = 0;;) i = i + 1;
}

struct Note {
  int core, is_last;
};

// The share of the time of a round in which both were on one core.
double together() {
  const double start = now_us();
  double shared = 0;
  for (bool goes_on = true; goes_on;) {
    const double began = now_us();
    const Note mine{sched_getcpu(), check::rank == 0 && began - start > round_us};
    Note theirs{};
    MPI_Request both[2];
    const int other = 1 - check::rank;
    MPI(MPI_Irecv(&theirs, sizeof theirs, MPI_BYTE, other, 1, MPI_COMM_WORLD, &both[0]));
    MPI(MPI_Isend(&mine, sizeof mine, MPI_BYTE, other, 1, MPI_COMM_WORLD, &both[1]));
    MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    if (mine.core == theirs.core) shared += now_us() - began;
    goes_on = mine.is_last == 0 && theirs.is_last == 0;
  }
  return shared / (now_us() - start);
}

void part() {
  if (!has_cores) return;
  const pid_t stranger = start_stranger();
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  double shares[rounds];
  for (double& share : shares) {
    go_to_a_core();
    share = together();
  }
  kill(stranger, SIGKILL);
  std::sort(shares, shares + rounds);
  const double usual = shares[rounds / 2];
  if (usual > most_together) {
    check::fail(__FILE__, __LINE__, "on one core in %.0f %% of the time", 100 * usual);
  }
  if (getenv("CHECK_TELL"))
    printf("together %.3f (%.3f to %.3f)\n", usual, shares[0], shares[rounds - 1]);
}

}  // namespace

int main(int argc, char** argv) {
  has_cores = runs_anywhere();
  return check::main(argc, argv, {{"part", part, 2}});
}
