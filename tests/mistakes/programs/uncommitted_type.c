#include <mpi.h>

int main(int argc, char** argv) {
  int rank;
  double matrix[8][8] = {{0}};
  MPI_Datatype column;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  MPI_Type_vector(8, 1, 8, MPI_DOUBLE, &column);
  if (rank == 1) MPI_Send(matrix, 1, column, 0, 5, MPI_COMM_WORLD);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
