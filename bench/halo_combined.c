// Would a halo between two nodes be quicker if a node's small blocks for the other one left as one
// message? Each rank swaps a block with 1, 2 or 3 ranks of the other half of the ranks and with two
// of its own half: each message by itself, or those for the other half gathered by the first rank
// of its half, sent as one, and scattered there. In both forms blocks within a half go by
// themselves.
//   mpicc -O2 bench/halo_combined.c -o combined && headway cluster up --hosts 2 --rate 1gbit &&
//   headway cluster run --ranks 8 ./combined
// The forms take turns. Rank 0 prints microseconds until the last rank is done: medians and
// quartiles, and how many times longer the messages by themselves took.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_bytes = 1024, most_degree = 3, sides = 2, rounds = 400, warm = 50, most_ranks = 64 };
enum { apart, together, forms };
static int half, first, other, me, ranks;  // ranks of a half; where ours and the other one begin
static MPI_Comm node;
static char out[most_degree * most_bytes], in[(most_degree + sides) * most_bytes];
static char gathered[most_ranks * most_degree * most_bytes];
static char arrived[most_ranks * most_degree * most_bytes];

static int by_time(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void exchange(int form, int degree, int bytes) {
  MPI_Request all[2 * (most_degree + sides)];
  int count = 0;
  for (int s = 0; s < sides; s++) {
    const int from = first + (me + (s ? 1 : half - 1)) % half;
    MPI_Irecv(in + (degree + s) * bytes, bytes, MPI_BYTE, from, s, MPI_COMM_WORLD, &all[count++]);
  }
  for (int d = 0; form == apart && d < degree; d++) {
    const int from = other + (me - d + half) % half;
    MPI_Irecv(in + d * bytes, bytes, MPI_BYTE, from, sides + d, MPI_COMM_WORLD, &all[count++]);
  }
  for (int s = 0; s < sides; s++) {
    const int to = first + (me + (s ? half - 1 : 1)) % half;
    MPI_Isend(out, bytes, MPI_BYTE, to, s, MPI_COMM_WORLD, &all[count++]);
  }
  for (int d = 0; form == apart && d < degree; d++) {
    const int to = other + (me + d) % half;
    MPI_Isend(out + d * bytes, bytes, MPI_BYTE, to, sides + d, MPI_COMM_WORLD, &all[count++]);
  }
  if (form == together) {
    const int share = degree * bytes;
    MPI_Gather(out, share, MPI_BYTE, gathered, share, MPI_BYTE, 0, node);
    if (me == 0)
      MPI_Sendrecv(gathered, share * half, MPI_BYTE, other, 99, arrived, share * half, MPI_BYTE,
                   other, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Scatter(arrived, share, MPI_BYTE, in, share, MPI_BYTE, 0, node);
  }
  MPI_Waitall(count, all, MPI_STATUSES_IGNORE);
}

static void measure(int degree, int bytes) {
  static double times[forms][rounds];
  for (int round = -warm; round < rounds; round++) {
    for (int form = 0; form < forms; form++) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      exchange(form, degree, bytes);
      double took = MPI_Wtime() - start, last = 0;
      MPI_Allreduce(&took, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (round >= 0) times[form][round] = 1e6 * last;
    }
  }
  if (first + me > 0) return;
  printf("%d to the other half, %4d B:", degree, bytes);
  for (int form = 0; form < forms; form++) {
    double* const all = times[form];
    qsort(all, rounds, sizeof *all, by_time);
    printf("  %s %6.1f us (%.1f to %.1f)", form == apart ? "apart" : "together", all[rounds / 2],
           all[rounds / 4], all[3 * rounds / 4]);
  }
  printf("  %.2f\n", times[apart][rounds / 2] / times[together][rounds / 2]);
  fflush(stdout);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  half = ranks / 2;
  if (half < most_degree || ranks != 2 * half || half > most_ranks) {
    if (rank == 0)
      fprintf(stderr, "halo_combined: an even number of ranks, 6 to %d\n", 2 * most_ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  first = rank < half ? 0 : half, other = half - first, me = rank - first;
  MPI_Comm_split(MPI_COMM_WORLD, first, rank, &node);
  for (int degree = 1; degree <= most_degree; degree++) {
    for (int bytes = 8; bytes <= most_bytes; bytes = bytes == 8 ? 256 : 4 * bytes)
      measure(degree, bytes);
  }
  MPI_Comm_free(&node);
  MPI_Finalize();
  return 0;
}
