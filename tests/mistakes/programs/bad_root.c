#include <mpi.h>

int main(int argc, char** argv) {
  int settings[3] = {0};
  MPI_Init(&argc, &argv);
  /* mistake */
  MPI_Bcast(settings, 3, MPI_INT, 1, MPI_COMM_WORLD); /* started with one rank */
  /* end */
  MPI_Finalize();
  return 0;
}
