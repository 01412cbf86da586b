/* A token travels around all ranks and grows at each stop; rank 0 checks what comes back and
   prints how long one hop took. Usage: ring [ROUNDS] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank, size, next, previous, round;
  int rounds = argc > 1 ? atoi(argv[1]) : 1000;
  long token = 0, expected;
  double seconds;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;

  if (rounds < 1) {
    if (rank == 0) fprintf(stderr, "ring: ROUNDS must be a number above 0\n");
    MPI_Finalize();
    return 2;
  }

  MPI_Barrier(MPI_COMM_WORLD);
  seconds = -MPI_Wtime();
  for (round = 0; round < rounds; ++round) {
    if (rank == 0) {
      /* Sendrecv, so that a ring of one rank works as well. */
      ++token;
      MPI_Sendrecv_replace(&token, 1, MPI_LONG, next, 0, previous, 0, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&token, 1, MPI_LONG, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      token += rank + 1;
      MPI_Send(&token, 1, MPI_LONG, next, 0, MPI_COMM_WORLD);
    }
  }
  seconds += MPI_Wtime();

  /* Each round adds 1 + 2 + ... + size. */
  expected = (long)rounds * size * (size + 1) / 2;
  MPI_Bcast(&token, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("ring: %d ranks, %d rounds, token %ld, %.2f us a hop\n", size, rounds, token,
           1e6 * seconds / rounds / size);
    if (token != expected) fprintf(stderr, "ring: the token should be %ld\n", expected);
  }
  MPI_Finalize();
  return token == expected ? 0 : 1;
}
