/* record_cost: what a recording costs a program. One rank; three calls a round (MPI_Irecv and
   MPI_Isend of 8 B to itself, MPI_Waitall), and so much computation that --rate calls a second are
   made; 0: none. Prints one line of JSON. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A chain of additions: so many take the same time in every run. */
static double work(long steps) {
  double x = 1;
  for (long i = 0; i < steps; ++i) x = x * 1.0000001 + 1e-9;
  return x;
}

int main(int argc, char** argv) {
  double rate = 0, kept = 0;
  long rounds = 100000, steps = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--rate")) rate = atof(argv[i + 1]);
    if (!strcmp(argv[i], "--rounds")) rounds = atol(argv[i + 1]);
    if (!strcmp(argv[i], "--steps")) steps = atol(argv[i + 1]);
  }
  MPI_Init(&argc, &argv);
  char out[8] = "", in[8];
  if (rate > 0 && steps == 0) { /* asked how many steps make that rate: without a recording */
    const double before = now();
    kept += work(10000000);
    steps = (long)(10000000 / (now() - before) * 3 / rate);
  }
  for (int part = 0; part < 2; ++part) { /* the first warms up */
    const double begin = now();
    const long count = part == 0 ? rounds / 10 : rounds;
    for (long i = 0; i < count; ++i) {
      MPI_Request both[2];
      MPI_Irecv(in, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, &both[0]);
      MPI_Isend(out, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, &both[1]);
      MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
      if (steps) kept += work(steps);
    }
    const double took = now() - begin;
    if (part == 1) {
      printf(
          "@@{\"measure\":\"record_cost\",\"calls\":%ld,\"seconds\":%.9f,\"steps\":%ld,\"kept\":%g}"
          "\n",
          3 * rounds, took, steps, kept);
    }
  }
  MPI_Finalize();
  return 0;
}
