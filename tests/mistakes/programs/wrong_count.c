#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double* matrix = malloc(8);
  /* mistake */
  unsigned rows = 65536, columns = 32768;
  int count = (int)(rows * columns); /* more than an int can hold */
  if (rank == 1) MPI_Send(matrix, count, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  free(matrix);
  MPI_Finalize();
  return 0;
}
