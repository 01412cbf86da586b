#include <mpi.h>

int main(int argc, char** argv) {
  int rank, value = 1;
  MPI_Comm work, kept_elsewhere;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  MPI_Comm_dup(MPI_COMM_WORLD, &work);
  kept_elsewhere = work;
  MPI_Comm_free(&work);
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 2, kept_elsewhere);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
