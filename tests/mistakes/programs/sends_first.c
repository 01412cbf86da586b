#include <mpi.h>

static double mine[4000000], other[4000000];

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  MPI_Send(mine, 4000000, MPI_DOUBLE, 1 - rank, 3, MPI_COMM_WORLD);
  MPI_Recv(other, 4000000, MPI_DOUBLE, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  /* end */
  MPI_Finalize();
  return 0;
}
