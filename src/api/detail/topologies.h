// Topologies: what the calls on grids and graphs share. Thread: any application thread, without the
// engine. Owns nothing. Invariant: what the ranks gave differently is told on all of them.
#pragma once
#include <utility>

#include "api/detail/comms.h"
#include "api/detail/info.h"
#include "communicators/topology.h"

namespace headway::api {

// Raises for a communicator that has not that kind of topology, whose name `missing` is.
[[gnu::cold, gnu::noinline]] int raise_no_topology(const Story& story, const char* missing,
                                                   const char* remedy);

// How a call that makes one ends; raises what the ranks gave differently.
int hand_out_made(const Story& story, Outcome outcome, communicators::Accord accord,
                  const objects::Comm* made, MPI_Comm* handle);

// `what`: a grid, a graph or edges.
template <class What>
int make_with(const Story& story, What&& what, bool reorder, MPI_Comm* handle,
              const objects::Info* hints = nullptr) {
  const Inside inside(story.call, unset, unset, story.comm);
  communicators::Accord accord = communicators::Accord::alike;
  objects::Comm* made = nullptr;
  const Outcome outcome =
      communicators::create(makers(), story.comm, std::forward<What>(what), reorder, accord, made);
  if (made && hints) use_hints(*made, *hints);
  return hand_out_made(story, outcome, accord, made, handle);
}

}  // namespace headway::api
