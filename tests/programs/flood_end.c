// Rank 0 is in MPI_Finalize while rank 1 still broadcasts: COUNT times at once, so that many
// messages of a collective lie there, and, from a second and a half on, 5,000 times a second for as
// long. Prints how many of those there were: if each poll of rank 0 takes long, its ring is full
// and rank 1 waits. floods.py runs it.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void broadcast(void) {
  int value = 0;
  MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD);
}

static int send_on(int count) {
  const double begun = MPI_Wtime();
  for (int i = 0; i < count; ++i) broadcast();
  while (MPI_Wtime() < begun + 1.5) usleep(1000);
  int late = 0;
  for (; MPI_Wtime() < begun + 3; ++late) {
    usleep(200);
    broadcast();
  }
  return late;
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int late = rank == 1 ? send_on(atoi(argv[1])) : 0;
  MPI_Finalize();
  if (rank == 1) printf("ok %d\n", late);
  return 0;
}
