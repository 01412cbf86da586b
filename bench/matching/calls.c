// Collective calls of real ranks, for what their matching queues count: rank 0 is late, so that
// messages wait for it, and every second time the others are, so that receives do.
// calls gather|allreduce|iallgather [--rounds R] [--bytes B]; the results are checked.
#include "common.h"

enum { burst = 8 };  // Iallgather calls under way at once

static int rank, ranks;

static int expected_of(int from, int round) { return from * 1000 + round; }

static void check(int got, int wanted) {
  if (got != wanted) fail("a collective brought wrong data");
}

static void gather(int round, int* in, int* out, int n) {
  for (int i = 0; i < n; i++) out[i] = expected_of(rank, round);
  MPI_Gather(out, n, MPI_INT, in, n, MPI_INT, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < ranks; r++) check(in[r * n + n - 1], expected_of(r, round));
}

static void allreduce(int round, int* in, int* out, int n) {
  for (int i = 0; i < n; i++) out[i] = expected_of(rank, round);
  MPI_Allreduce(out, in, n, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  check(in[n - 1], expected_of(ranks - 1, round));
}

static void iallgather(int round, int* in, int* out, int n) {
  MPI_Request requests[burst];
  size_t all = (size_t)ranks * (size_t)n;
  for (int b = 0; b < burst; b++) {
    for (int i = 0; i < n; i++) out[b * n + i] = expected_of(rank, round + b);
    MPI_Iallgather(out + b * n, n, MPI_INT, in + (size_t)b * all, n, MPI_INT, MPI_COMM_WORLD,
                   &requests[b]);
  }
  MPI_Waitall(burst, requests, MPI_STATUSES_IGNORE);
  for (int b = 0; b < burst; b++)
    for (int r = 0; r < ranks; r++)
      check(in[(size_t)b * all + (size_t)(r * n)], expected_of(r, round + b));
}

int main(int argc, char** argv) {
  const char* call = argc > 1 ? argv[1] : "";
  int rounds = (int)arg_number(argc, argv, "--rounds", 30);
  int n = (int)arg_number(argc, argv, "--bytes", 4) / (int)sizeof(int);
  void (*once)(int, int*, int*, int) = strcmp(call, "gather") == 0       ? gather
                                       : strcmp(call, "allreduce") == 0  ? allreduce
                                       : strcmp(call, "iallgather") == 0 ? iallgather
                                                                         : NULL;
  if (!once) fail("the first word is gather, allreduce or iallgather");
  if (rounds < 1 || n < 1 || n > 1 << 20) fail("--rounds or --bytes is out of range");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int* in = calloc((size_t)ranks * (size_t)n * burst, sizeof(int));
  int* out = calloc((size_t)n * burst, sizeof(int));
  if (!in || !out) fail("out of memory");
  double start = now_us();
  for (int round = 0; round < rounds; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if ((rank == 0) == (round % 2 == 0)) usleep(2000);
    once(round, in, out, n);
  }
  double took = (now_us() - start) / rounds;
  if (rank == 0) print_samples(call, (size_t)n * sizeof(int), "hot", "us", 0, 0, &took, 1);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
