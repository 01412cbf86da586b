#include <iostream>

#include "average.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = -1, size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double result = average(rank, MPI_COMM_WORLD);
  if (rank == 0) std::cout << "average " << result << " of " << size << std::endl;
  MPI_Finalize();
}
