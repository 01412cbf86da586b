#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* mistake */
  int all[4] = {0}, counts[2] = {2, 2}, places[2] = {0, 2};
  int* own = all + 2 * rank;
  MPI_Gatherv(own, 2, MPI_INT, all, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
  /* end */
  MPI_Finalize();
  return 0;
}
