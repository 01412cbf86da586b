#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  double* block = calloc(1000, sizeof(double));
  MPI_Request requests[2];
  for (int i = 0; i < 2 && rank == 1; ++i) {
    MPI_Irecv(block, 1000, MPI_DOUBLE, 0, i, MPI_COMM_WORLD, &requests[i]);
  }
  /* end */
  MPI_Barrier(MPI_COMM_WORLD); /* so that no message is there before both receives are */
  for (int i = 0; i < 2 && rank == 0; ++i) {
    MPI_Isend(block, 1000, MPI_DOUBLE, 1, i, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  free(block);
  MPI_Finalize();
  return 0;
}
