// Loops of tests and probes where ranks or threads share a core: one that found nothing gives the
// core away, or each exchange takes as long as a time slice of the system, some milliseconds.
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "check.h"

namespace {

constexpr int exchanges = 60, rounds = 5;
// Ten to thirty microseconds are usual; without yields each takes thousands.
constexpr double most_us = 400;

double now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) * 1e6 + double(t.tv_nsec) * 1e-3;
}

// Before MPI_Init: all ranks on one core, the first that there is, whatever the launcher chose.
void share_a_core() {
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) return;
  }
  check::fail(__FILE__, __LINE__, "no core to run on");
}

// The quickest of some rounds: others may want this core, too.
template <class Exchange>
void expect_quick(Exchange&& exchange) {
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) {
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    const double start = now_us();
    for (int i = 0; i < exchanges; ++i) exchange(i);
    best = std::min(best, (now_us() - start) / exchanges);
  }
  if (best > most_us) check::fail(__FILE__, __LINE__, "an exchange takes %.1f us", best);
}

// A receive and a send, and `wait` for both.
template <class Wait>
void swap(int i, int tag, Wait&& wait) {
  const int partner = check::rank ^ 1;
  int got = -1;
  MPI_Request both[2];
  MPI(MPI_Irecv(&got, 1, MPI_INT, partner, tag, MPI_COMM_WORLD, &both[0]));
  MPI(MPI_Isend(&i, 1, MPI_INT, partner, tag, MPI_COMM_WORLD, &both[1]));
  wait(both);
  MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  CHECK_EQ(got, i);
}

void test_one() {
  expect_quick([](int i) {
    swap(i, 1, [](MPI_Request* both) {
      for (int done = 0; !done;) MPI(MPI_Test(&both[0], &done, MPI_STATUS_IGNORE));
    });
  });
}

void test_all() {
  expect_quick([](int i) {
    swap(i, 1, [](MPI_Request* both) {
      for (int done = 0; !done;) MPI(MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE));
    });
  });
}

void test_any() {
  expect_quick([](int i) {
    swap(i, 1, [](MPI_Request* both) {
      for (int left = 2; left > 0;) {
        int index = 0, done = 0;
        MPI(MPI_Testany(2, both, &index, &done, MPI_STATUS_IGNORE));
        left -= done;
      }
    });
  });
}

void test_some() {
  expect_quick([](int i) {
    swap(i, 1, [](MPI_Request* both) {
      for (int left = 2; left > 0;) {
        int count = 0, which[2];
        MPI(MPI_Testsome(2, both, &count, which, MPI_STATUSES_IGNORE));
        left -= count;
      }
    });
  });
}

void get_status() {
  expect_quick([](int i) {
    swap(i, 1, [](MPI_Request* both) {
      for (int done = 0; !done;) MPI(MPI_Request_get_status(both[0], &done, MPI_STATUS_IGNORE));
    });
  });
}

void ibarrier() {
  expect_quick([](int) {
    MPI_Request request;
    MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    for (int done = 0; !done;) MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
  });
}

void iprobe() {
  expect_quick([](int i) {
    const int partner = check::rank ^ 1;
    int got = -1;
    MPI(MPI_Send(&i, 1, MPI_INT, partner, 2, MPI_COMM_WORLD));
    for (int found = 0; !found;)
      MPI(MPI_Iprobe(partner, 2, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
    MPI(MPI_Recv(&got, 1, MPI_INT, partner, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(got, i);
  });
}

void improbe() {
  expect_quick([](int i) {
    const int partner = check::rank ^ 1;
    int got = -1;
    MPI_Message message;
    MPI(MPI_Send(&i, 1, MPI_INT, partner, 2, MPI_COMM_WORLD));
    for (int found = 0; !found;)
      MPI(MPI_Improbe(partner, 2, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE));
    MPI(MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    CHECK_EQ(got, i);
  });
}

}  // namespace

int main(int argc, char** argv) {
  share_a_core();
  return check::main(argc, argv,
                     {{"test_one", test_one, 2},
                      {"test_all", test_all, 2},
                      {"test_any", test_any, 2},
                      {"test_some", test_some, 2},
                      {"get_status", get_status, 2},
                      {"ibarrier", ibarrier, 2},
                      {"iprobe", iprobe, 2},
                      {"improbe", improbe, 2}});
}
