// What the calls on grids and graphs share.
#include "api/detail/topologies.h"

namespace headway::api {
namespace {

struct Difference {
  communicators::Accord accord;
  int code;
  const char *why, *remedy, *cause;
};
constexpr Difference differences[] = {
    {communicators::Accord::shapes_differ, MPI_ERR_TOPOLOGY,
     "the ranks describe different topologies",
     "pass the same lengths and periods, or index and edges, and the same reorder on all ranks",
     "a value that each rank computes or reads by itself"},
    {communicators::Accord::weights_differ, MPI_ERR_ARG,
     "some ranks give weights, and others MPI_UNWEIGHTED",
     "pass MPI_UNWEIGHTED on all ranks or on none, and MPI_WEIGHTS_EMPTY where there is no edge",
     nullptr},
    {communicators::Accord::reorder_differs, MPI_ERR_ARG,
     "reorder is true on some ranks, and false on others",
     "pass the same value on all ranks of the communicator", nullptr},
};

}  // namespace

int raise_no_topology(const Story& story, const char* missing, const char* remedy) {
  base::Text<120> why;
  why << "the communicator has no " << missing << " topology";
  return raise(
      story, MPI_ERR_TOPOLOGY, why.c_str(), remedy,
      "the communicator that the topology was made from was passed instead of the new one");
}

int hand_out_made(const Story& story, Outcome outcome, communicators::Accord accord,
                  const objects::Comm* made, MPI_Comm* handle) {
  if (outcome != Outcome::ok) return raise(story, outcome);
  for (const Difference& one : differences) {
    if (one.accord == accord) return raise(story, one.code, one.why, one.remedy, one.cause);
  }
  *handle = made ? handle_of<MPI_Comm>(made->handle) : MPI_COMM_NULL;
  return MPI_SUCCESS;
}

}  // namespace headway::api
