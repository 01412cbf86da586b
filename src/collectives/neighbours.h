// Neighbours: in which order the messages of a collective of neighbours are sent and received: the
// schedules and the calls without one have the same, so that ranks of both kinds meet. Thread: any.
// Owns nothing. Invariant: between two ranks the k-th message that is sent is the k-th that is
// received, and the k-th edge of a rank to itself leaves and arrives likewise.
#pragma once
#include "base/check.h"
#include "objects/topology.h"

namespace headway::collectives {

// Calls visit(edge, rank) for each edge that leads to another rank, as messages are sent.
template <class Visit>
void each_send(const objects::Topology& topology, int self, Visit&& visit) {
  const objects::Neighbours targets = topology.targets();
  for (int edge = 0; edge < targets.count; ++edge) {
    const int rank = targets[edge];
    if (rank != objects::no_neighbour && rank != self) visit(edge, rank);
  }
}

// Calls visit(place, rank) for each edge that comes from another rank, as messages are received;
// `place`: of its block.
template <class Visit>
void each_receive(const objects::Topology& topology, int self, Visit&& visit) {
  const objects::Neighbours sources = topology.sources();
  for (int turn = 0; turn < sources.count; ++turn) {
    const int place = topology.received(turn), rank = sources[place];
    if (rank != objects::no_neighbour && rank != self) visit(place, rank);
  }
}

// Calls visit(edge, place) for each edge of a rank to itself.
template <class Visit>
void each_own(const objects::Topology& topology, int self, Visit&& visit) {
  const objects::Neighbours sources = topology.sources(), targets = topology.targets();
  int edge = 0;
  for (int turn = 0; turn < sources.count; ++turn) {
    const int place = topology.received(turn);
    if (sources[place] != self) continue;
    while (edge < targets.count && targets[edge] != self) ++edge;
    HEADWAY_CHECK(edge < targets.count);  // it is in both lists
    visit(edge++, place);
  }
}

}  // namespace headway::collectives
