#include <mpi.h>

int main(int argc, char** argv) {
  int rank, data[4] = {1, 2, 3, 4};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  if (rank == 0) MPI_Send(data, 4, MPI_INT, 1, 8, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(data, 2, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
