/* The exchange of ghost rows along a line of ranks, each row BYTES long, and MS of computation on
 * them; in two forms.
 *   ghosts BYTES MS ROUNDS once|late
 * once: each Isend is waited for at once. late: all is waited for where the rows are needed.
 * Rank 0 prints "ms T" for each round, and at the end "ok". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void compute(int ms) {
  const double end = MPI_Wtime() + ms * 1e-3;
  while (MPI_Wtime() < end) {
  }
}

static void check(const unsigned char* row, int bytes, int from, int round) {
  for (int i = 0; i < bytes; ++i) {
    if (row[i] == (unsigned char)(from + round + i / 4096)) continue;
    fprintf(stderr, "row of rank %d, round %d: byte %d is wrong\n", from, round, i);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  const int bytes = atoi(argv[1]), ms = atoi(argv[2]), rounds = atoi(argv[3]);
  const int once = strcmp(argv[4], "once") == 0;
  unsigned char* rows = malloc(4 * (size_t)bytes);
  for (int round = 0; round < rounds && rows; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Request ins[2], outs[2];
    for (int side = 0; side < 2; ++side) {
      const int other = side ? rank + 1 : rank - 1;
      const int peer = other < 0 || other >= ranks ? MPI_PROC_NULL : other;
      MPI_Irecv(rows + (size_t)side * bytes, bytes, MPI_BYTE, peer, 1 - side, MPI_COMM_WORLD,
                &ins[side]);
    }
    for (int side = 0; side < 2; ++side) {
      const int other = side ? rank + 1 : rank - 1;
      const int peer = other < 0 || other >= ranks ? MPI_PROC_NULL : other;
      unsigned char* own = rows + (size_t)(2 + side) * bytes;
      for (int i = 0; i < bytes; ++i) own[i] = (unsigned char)(rank + round + i / 4096);
      MPI_Isend(own, bytes, MPI_BYTE, peer, side, MPI_COMM_WORLD, &outs[side]);
      if (once) {
        MPI_Wait(&outs[side], MPI_STATUS_IGNORE);
        memset(own, 0, (size_t)bytes);
      }
    }
    compute(ms);
    if (!once) MPI_Waitall(2, outs, MPI_STATUSES_IGNORE);
    for (int side = 0; side < 2; ++side) {
      const int other = side ? rank + 1 : rank - 1;
      MPI_Wait(&ins[side], MPI_STATUS_IGNORE);
      if (other >= 0 && other < ranks) check(rows + (size_t)side * bytes, bytes, other, round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("ms %.1f\n", 1e3 * (MPI_Wtime() - start));
  }
  if (rank == 0) puts("ok");
  free(rows);
  MPI_Finalize();
  return rows ? 0 : 1;
}
