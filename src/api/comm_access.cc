// Communicators, looking at them: MPI 5.0, sections 7.4.1 and 7.8.
#include <cstring>

#include "api/detail/call.h"

using namespace headway;
using namespace headway::api;

HEADWAY_ENTRY(MPI_Comm_rank)(MPI_Comm comm, int* rank) {
  Story story{.call = "MPI_Comm_rank"};
  if (const int code = take_comm(story, comm)) return code;
  *rank = story.comm->rank;
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Comm_size)(MPI_Comm comm, int* size) {
  Story story{.call = "MPI_Comm_size"};
  if (const int code = take_comm(story, comm)) return code;
  *size = story.comm->size;
  return MPI_SUCCESS;
}
