#include <mpi.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  MPI_Finalize();
  if (rank == 1) MPI_Barrier(MPI_COMM_WORLD);
  /* end */
  return 0;
}
