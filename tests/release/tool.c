/* tool: stands between a program and MPI, as profilers do: each call of the program comes to the
   library from here. Preloaded, linked before the library, or part of the program. With
   TOOL_HANDS_ON it says of each call that it comes from one and the same place, as no tool should,
   so that a test sees that it is asked. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

void headway_call_sites_from(uintptr_t (*site)(void)) __attribute__((weak));

static volatile long calls; /* counted behind each call too, so that none of them is a jump */

static uintptr_t one_place(void) { return (uintptr_t)&calls; }

int MPI_Init(int* argc, char*** argv) {
  const int code = PMPI_Init(argc, argv);
  if (getenv("TOOL_HANDS_ON") && headway_call_sites_from) headway_call_sites_from(one_place);
  return code;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (getenv("TOOL_HANDS_ON") && headway_call_sites_from) headway_call_sites_from(one_place);
  return code;
}

/* As some tools do, through a function of their own. */
static __attribute__((noinline)) int receive(void* buf, int count, MPI_Datatype type, int source,
                                             int tag, MPI_Comm comm, MPI_Status* status) {
  const int code = PMPI_Recv(buf, count, type, source, tag, comm, status);
  ++calls;
  return code;
}

int MPI_Recv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status* status) {
#ifdef TOOL_IS_INSIDE
  const int code = PMPI_Recv(buf, count, type, source, tag, comm, status);
  (void)receive;
#else
  const int code = receive(buf, count, type, source, tag, comm, status);
#endif
  ++calls;
  return code;
}

int MPI_Send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  const int code = PMPI_Send(buf, count, type, dest, tag, comm);
  ++calls;
  return code;
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const int code = PMPI_Wait(request, status);
  ++calls;
  return code;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const int code = PMPI_Waitall(count, requests, statuses);
  ++calls;
  return code;
}
