/* Alltoalls on two communicators of all ranks: in one those of a host stand side by side, in the
 * other the hosts take turns. argv: bytes of a block, calls, ranks of a host. Rank 0 prints for
 * each how many frames went over TCP in a call, of the rank with most, and how many blocks were
 * wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

static char byte_of(int from, int to, int call) { return (char)(from * 31 + to * 7 + call); }

static void measure(const char* name, MPI_Comm comm, Counter frames, int bytes, int calls) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  char* out = malloc((size_t)bytes * (size_t)size);
  char* in = malloc((size_t)bytes * (size_t)size);
  long wrong = 0;
  unsigned long long before = 0;
  /* The first call opens connections. */
  for (int call = -1; call < calls; ++call) {
    for (int to = 0; to < size; ++to)
      memset(out + (size_t)bytes * (size_t)to, byte_of(rank, to, call), (size_t)bytes);
    if (call == 0) before = value(frames);
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
    for (int from = 0; from < size; ++from) {
      const char* block = in + (size_t)bytes * (size_t)from;
      const char right = byte_of(from, rank, call);
      wrong += block[0] != right || memcmp(block, block + 1, (size_t)bytes - 1) != 0;
    }
  }
  const double mine = (double)(value(frames) - before);
  double most = 0;
  MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
  MPI_Reduce(rank ? &wrong : MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, 0, comm);
  if (rank == 0) printf("%s frames=%.2f wrong=%ld\n", name, most / calls, wrong);
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  int provided, rank;
  MPI_Init(&argc, &argv);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4) {
    fprintf(stderr, "usage: nodes BYTES CALLS RANKS_OF_A_HOST\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int bytes = atoi(argv[1]), calls = atoi(argv[2]), each = atoi(argv[3]);
  const Counter frames = counter("headway_tcp_frames_out", MPI_T_PVAR_CLASS_COUNTER);
  MPI_Comm turns;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank % each, &turns); /* of one key the ranks' order counts */
  measure("side", MPI_COMM_WORLD, frames, bytes, calls);
  measure("turns", turns, frames, bytes, calls);
  MPI_Comm_free(&turns);
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
