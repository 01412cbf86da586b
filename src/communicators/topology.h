// Communicators with a topology: MPI 5.0, sections 8.5.1, 8.5.3 and 8.5.4. Thread: any application
// thread, without the engine. Owner: the new Comm goes to the caller with one reference and its
// handle. Invariants: arguments were checked by api/; what the ranks gave is compared in the first
// messages, and all of them hear the same of it, so that none waits for one that has given up, be
// it for want of memory.
#pragma once
#include <cstdint>

#include "communicators/communicators.h"
#include "objects/topology.h"

namespace headway::communicators {

// What the ranks found when they compared what they gave. But for `alike`, nothing was made.
enum class Accord : uint8_t { alike, shapes_differ, weights_differ, reorder_differs };

// Of the first ranks of `comm`, one for each place; with `reorder`, neighbours share nodes where
// that can be won. `made` is null at the others. The shape is taken over; null: this rank had no
// memory for it, and so all have none.
Outcome create(const Makers& makers, objects::Comm* comm, objects::Grid* shape, bool reorder,
               Accord& accord, objects::Comm*& made);
Outcome create(const Makers& makers, objects::Comm* comm, objects::Graph* shape, bool reorder,
               Accord& accord, objects::Comm*& made);
// Which place this rank would get, without a message; -1: none.
Outcome find_place(const Makers& makers, objects::Comm* comm, const objects::Grid& shape,
                   int& place);
Outcome find_place(const Makers& makers, objects::Comm* comm, const objects::Graph& shape,
                   int& place);

// Each rank gives the edges of its own number. With `reorder` a rank may get another number, and
// then has the edges that were given for that one. What does not match at the ends of an edge is
// found here, and of interest for collectives alone (Topology::fits_both_ways).
Outcome create(const Makers& makers, objects::Comm* comm, objects::Edges&& edges, bool reorder,
               Accord& accord, objects::Comm*& made);

// Edges of any ranks, named by one: of each source as many as its degree.
struct NamedEdges {
  int count = 0;  // of sources
  const int* sources = nullptr;
  const int* degrees = nullptr;
  const int* targets = nullptr;
  const int* weights = nullptr;  // null: none
  bool weighted = false;         // also without any edge
};
Outcome create(const Makers& makers, objects::Comm* comm, const NamedEdges& named, bool reorder,
               Accord& accord, objects::Comm*& made);

}  // namespace headway::communicators
