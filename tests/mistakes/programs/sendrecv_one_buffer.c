#include <mpi.h>

int main(int argc, char** argv) {
  int rank, edge[4] = {0}, got[4];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  if (rank == 0)
    MPI_Sendrecv(edge, 4, MPI_INT, 1, 6, got, 4, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1)
    MPI_Sendrecv(edge, 4, MPI_INT, 0, 6, edge, 4, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
