#include <mpi.h>

int main(int argc, char** argv) {
  int rank, work = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  if (rank == 0) MPI_Ssend(&work, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&work, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  /* end */
  MPI_Finalize();
  return 0;
}
