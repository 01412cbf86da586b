#include <mpi.h>

int main(int argc, char** argv) {
  int rank, part[3] = {0}, all[6];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  int mine = rank == 0 ? 2 : 3; /* the rest of a division went to rank 1 */
  MPI_Gather(part, mine, MPI_INT, all, mine, MPI_INT, 0, MPI_COMM_WORLD);
  /* end */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
