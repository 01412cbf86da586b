#include <mpi.h>

int main(int argc, char** argv) {
  int rank;
  /* mistake */
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Init(&argc, &argv);
  /* end */
  MPI_Finalize();
  return 0;
}
