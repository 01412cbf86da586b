#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Init(&argc, &argv);
  /* mistake */
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Finalize();
  MPI_Barrier(copy);
  /* end */
  MPI_Session_finalize(&session);
  return 0;
}
