#include <mpi.h>

int main(int argc, char** argv) {
  int rank, mine = 1, other;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  MPI_Recv(&other, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(&mine, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD);
  /* end */
  MPI_Finalize();
  return 0;
}
