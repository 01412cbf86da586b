// How a rank waits where ranks share a core: over TCP it sleeps at once, since yields would keep
// the core busy for nothing; HEADWAY_YIELD, if set, is obeyed there, too.
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "mpi_t.h"

namespace {

constexpr int waits = 60;
constexpr useconds_t pause_us = 300;  // shorter than the millisecond of yields

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

// Sleeps of rank 1 in short waits for rank 0. Probes wait as receives do, and are never released
// early.
mpi_t::Value sleeps_of_a_round(const mpi_t::Counters& counters) {
  const mpi_t::Value before = counters.read("sleeps");
  for (int i = 0, value = -1; i < waits; ++i) {
    if (check::rank == 0) {
      usleep(pause_us);
      MPI(MPI_Send(&i, 1, MPI_INT, 1, 5, MPI_COMM_WORLD));
    } else {
      MPI(MPI_Probe(0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      MPI(MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_EQ(value, i);
    }
  }
  return counters.read("sleeps") - before;
}

// The best of some rounds: beside others on its core a rank that should yield sleeps, too.
void short_waits() {
  if (check::rank > 1) return;
  int provided = 0;
  MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  {
    const mpi_t::Counters counters;
    mpi_t::Value fewest = waits, most = 0;
    for (int round = 0; round < 5; ++round) {
      const mpi_t::Value sleeps = sleeps_of_a_round(counters);
      fewest = std::min(fewest, sleeps);
      most = std::max(most, sleeps);
    }
    const char* yield = getenv("HEADWAY_YIELD");
    const bool yields = yield != nullptr && atoi(yield) > 0;
    if (check::rank == 1 && yields) CHECK(fewest < waits / 2);
    if (check::rank == 1 && !yields) CHECK(most >= waits / 2);
  }
  MPI(MPI_T_finalize());
}

}  // namespace

int main(int argc, char** argv) {
  share_a_core();
  return check::main(argc, argv, {{"short_waits", short_waits, 2}});
}
