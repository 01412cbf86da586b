#include <mpi.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  (void)argc, (void)argv;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Comm_rank(comm, &rank);
  /* mistake */
  if (rank == 1) return 0;
  /* end */
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  return 0;
}
