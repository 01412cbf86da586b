/* A message that is ready long before it is sent, to a receiver that waits.
 *   ready BYTES MS ROUNDS [LATE]
 * Rank 0 writes it, but for its last LATE percent, sleeps MS, writes those, sends it, and is
 * answered. It prints "ms T" for each round, and at
 * the end "ok". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4 && argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  const int bytes = atoi(argv[1]), ms = atoi(argv[2]), rounds = atoi(argv[3]);
  const int soon = bytes / 100 * (100 - (argc == 5 ? atoi(argv[4]) : 0));
  unsigned char* data = malloc((size_t)bytes);
  for (int round = 0; round < rounds && data; ++round) {
    const double start = MPI_Wtime();
    if (rank == 0) {
      const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
      memset(data, round + 1, (size_t)soon);
      nanosleep(&pause, NULL);
      memset(data + soon, round + 1, (size_t)(bytes - soon));
      MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      printf("ms %.1f\n", 1e3 * (MPI_Wtime() - start));
    } else {
      MPI_Recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < bytes; ++i) {
        if (data[i] != (unsigned char)(round + 1)) MPI_Abort(MPI_COMM_WORLD, 3);
      }
      MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
  }
  if (rank == 0) puts("ok");
  free(data);
  MPI_Finalize();
  return data ? 0 : 1;
}
