/* costs_of_c: the calls of costs.F90 as C makes them. */
#include <mpi.h>

double in_c(int what, int calls);

static int values[2000];

double in_c(int what, int calls) {
  static MPI_Datatype column, ready = MPI_DATATYPE_NULL;
  int rank;
  if (ready == MPI_DATATYPE_NULL) {
    MPI_Type_create_hvector(10, 1, 8, MPI_INTEGER, &column);
    MPI_Type_create_hvector(10, 1, 200, column, &ready);
    MPI_Type_commit(&ready);
    MPI_Type_free(&column);
  }
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    switch (what) {
      case 1: MPI_Comm_rank(MPI_COMM_WORLD, &rank); break;
      case 2: MPI_Send(values, 100, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD); break;
      default: MPI_Send(values, 1, ready, MPI_PROC_NULL, 1, MPI_COMM_WORLD); break;
    }
  }
  return MPI_Wtime() - start;
}
