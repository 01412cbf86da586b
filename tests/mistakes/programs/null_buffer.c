#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  double* halo = malloc((size_t)-1 / 2); /* fails, and nobody looks */
  if (rank == 1) MPI_Send(halo, 1000, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  free(halo);
  MPI_Finalize();
  return 0;
}
