#include <mpi.h>
#include <stddef.h>

int main(int argc, char** argv) {
  int rank, value = 7;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  /* nobody waits for it, so no request is wanted */
  if (rank == 1) MPI_Isend(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, NULL);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
