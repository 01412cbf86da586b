/* tool: a PMPI tool in C. It sees each call of a Fortran program once, and none of what the binding
   calls for itself. */
#include <mpi.h>
#include <stdio.h>

static int sends, ranks_asked, types;

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  ++sends;
  return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  ++ranks_asked;
  return PMPI_Comm_rank(comm, rank);
}

int MPI_Type_commit(MPI_Datatype* datatype) {
  ++types;
  return PMPI_Type_commit(datatype);
}

int MPI_Finalize(void) {
  printf("tool: %d sends, %d ranks, %d types\n", sends, ranks_asked, types);
  return PMPI_Finalize();
}
