#include <mpi.h>

int main(int argc, char** argv) {
  int rank, work = 0, done = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  if (rank == 1) {
    MPI_Request request;
    MPI_Irecv(&work, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &request);
    while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  /* end */
  MPI_Finalize();
  return 0;
}
