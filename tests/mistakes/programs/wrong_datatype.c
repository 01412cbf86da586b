#include <mpi.h>

int main(int argc, char** argv) {
  int rank, got[100];
  double field[100] = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  if (rank == 0) MPI_Send(field, 100, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(got, 100, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
