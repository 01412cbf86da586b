#include <mpi.h>
#include <signal.h>

static double field[100000];

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  if (rank == 1) raise(SIGKILL); /* as a batch system does, out of memory */
  if (rank == 0) MPI_Send(field, 100000, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
  /* end */
  MPI_Finalize();
  return 0;
}
