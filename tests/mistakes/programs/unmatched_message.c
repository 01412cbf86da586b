#include <mpi.h>

int main(int argc, char** argv) {
  int rank, value = 7;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 17, MPI_COMM_WORLD);
  /* end */
  MPI_Finalize();
  return 0;
}
