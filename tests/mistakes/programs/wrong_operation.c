#include <mpi.h>

int main(int argc, char** argv) {
  double found = 1, any = 0;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  if (rank == 1) MPI_Allreduce(&found, &any, 1, MPI_DOUBLE, MPI_BOR, MPI_COMM_WORLD);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
