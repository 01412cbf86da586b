#include <mpi.h>

int main(int argc, char** argv) {
  int rank, edge = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  int right = rank + 1; /* the last rank has none */
  if (rank == 1) MPI_Send(&edge, 1, MPI_INT, right, 3, MPI_COMM_WORLD);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
