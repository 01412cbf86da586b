#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  /* mistake */
  char ready = 1, all = 0;
  MPI_Allreduce(&ready, &all, 1, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
  /* end */
  MPI_Finalize();
  return 0;
}
