#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (i = 0; i < 3; ++i) printf("rank %d, line %d\n", rank, i);
  MPI_Finalize();
  return 0;
}
