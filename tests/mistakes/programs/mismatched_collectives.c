#include <mpi.h>

static double field[100000];

int main(int argc, char** argv) {
  int rank;
  double sum = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  if (rank == 0) MPI_Bcast(field, 100000, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  /* end */
  MPI_Finalize();
  return 0;
}
