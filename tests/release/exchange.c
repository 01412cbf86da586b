/* Two ranks of one host exchange three messages under imbalance, and end nothing by hand: receives,
 * computation (rank 1's is half as long again), sends, a wait for the receives, one for the sends,
 * a word to each other.
 *   exchange BYTES US ROUNDS
 * Rank 0 prints "ms T" for each round, and at the end "ok". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { messages = 3 };

static void compute(double us) {
  const double end = MPI_Wtime() + us * 1e-6;
  while (MPI_Wtime() < end) {
  }
}

static void check(const unsigned char* in, size_t bytes, int expected) {
  for (size_t i = 0; i < bytes; i += 4096) {
    if (in[i] == (unsigned char)expected) continue;
    fprintf(stderr, "round %d: byte %zu is wrong\n", expected, i);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  const int bytes = atoi(argv[1]), rounds = atoi(argv[3]), other = 1 - rank;
  const double us = atof(argv[2]);
  unsigned char* in = malloc((size_t)bytes * messages);
  unsigned char* out = malloc((size_t)bytes * messages);
  for (int round = 0; round < rounds && in && out; ++round) {
    memset(out, round, (size_t)bytes * messages);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Request ins[messages], outs[messages];
    for (int m = 0; m < messages; ++m) {
      MPI_Irecv(in + (size_t)m * bytes, bytes, MPI_BYTE, other, m, MPI_COMM_WORLD, &ins[m]);
    }
    compute(rank ? 1.5 * us : us);
    for (int m = 0; m < messages; ++m) {
      MPI_Isend(out + (size_t)m * bytes, bytes, MPI_BYTE, other, m, MPI_COMM_WORLD, &outs[m]);
    }
    MPI_Waitall(messages, ins, MPI_STATUSES_IGNORE);
    MPI_Waitall(messages, outs, MPI_STATUSES_IGNORE);
    double here = MPI_Wtime() - start, there = 0;
    MPI_Sendrecv(&here, 1, MPI_DOUBLE, other, messages, &there, 1, MPI_DOUBLE, other, messages,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(in, (size_t)bytes * messages, round);
    if (rank == 0) printf("ms %.3f\n", 1e3 * (here > there ? here : there));
  }
  if (rank == 0) puts("ok");
  const int is_good = in && out;
  free(in);
  free(out);
  MPI_Finalize();
  return is_good ? 0 : 1;
}
