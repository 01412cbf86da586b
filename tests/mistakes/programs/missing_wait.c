#include <mpi.h>

int main(int argc, char** argv) {
  int rank, value = 7;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  if (rank == 1) MPI_Isend(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  /* end */
  MPI_Finalize();
  return 0;
}
