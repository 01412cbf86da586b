/* Every rank says who it is and where it runs: the smallest MPI program. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  char host[MPI_MAX_PROCESSOR_NAME];
  int length, rank, size;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(host, &length);
  printf("Hello from rank %d of %d on %s\n", rank, size, host);
  MPI_Finalize();
  return 0;
}
