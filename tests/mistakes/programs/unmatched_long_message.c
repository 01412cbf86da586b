#include <mpi.h>

static double field[100000];

int main(int argc, char** argv) {
  int rank;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  if (rank == 0) {
    MPI_Isend(field, 100000, MPI_DOUBLE, 1, 17, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  /* end */
  MPI_Finalize();
  return 0;
}
