#include <mpi.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Comm even;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2 == 0 ? 0 : MPI_UNDEFINED, 0, &even);
  MPI_Barrier(even); /* rank 1 is not in it */
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
