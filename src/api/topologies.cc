// Process topologies: MPI 5.0, chapter 8. There are none yet, so no communicator has one.
#include "api/detail/results.h"

using namespace headway;
using namespace headway::api;

HEADWAY_ENTRY(MPI_Topo_test)(MPI_Comm comm, int* status) {
  Story story{.call = "MPI_Topo_test"};
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = check_places(story, status)) return code;
  *status = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
