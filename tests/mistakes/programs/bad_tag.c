#include <mpi.h>

int main(int argc, char** argv) {
  int rank, value = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  int tag = (int)(3000000000u + (unsigned)rank); /* step * 1000000 + rank, say */
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
