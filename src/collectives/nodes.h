// Nodes: the ranks of a communicator as nodes of equally many ranks side by side. Thread: any. Owns
// nothing. Invariants: the layout depends on nothing but what all ranks of a call know alike;
// rank = node * each + place.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "objects/team.h"

namespace headway::collectives {

// How many ranks each node has, if all have equally many, side by side; else 1. node_of(rank) is 0
// where it is not known. A node that comes twice counts as two.
template <class NodeOf>
int ranks_a_node(int size, NodeOf&& node_of) {
  int each = 1;
  while (each < size && node_of(0) != 0 && node_of(each) == node_of(0)) ++each;
  if (each == 1 || size % each != 0) return 1;
  for (int rank = 0; rank < size; ++rank) {
    if (node_of(rank) == 0 || node_of(rank) != node_of(rank - rank % each)) return 1;
  }
  return each;
}

// Where there are no such nodes, and an algorithm for them is forced: the smallest number above 1
// that divides the ranks, so that what is right there is right on nodes.
inline int supposed_ranks_a_node(int size) {
  int each = 2;
  while (each < size && size % each != 0) ++each;
  return each < size ? each : size;
}

struct Nodes {
  int each;   // ranks of a node
  int count;  // nodes
  int node;   // of this rank
  int place;  // of this rank in its node

  Nodes(objects::Team team, int ranks_of_each)
      : each(ranks_of_each),
        count(team.size / ranks_of_each),
        node(team.self / ranks_of_each),
        place(team.self % ranks_of_each) {
    HEADWAY_CHECK(each > 0 && each * count == team.size);
  }
  int first_of(int other) const { return other * each; }
  int rank_of(int other, int at) const { return other * each + at; }
  // Nodes and places counted from the own one, so that not all turn to the same.
  int node_after(int steps) const { return (node + steps) % count; }
  int node_before(int steps) const { return (node + count - steps) % count; }
  int place_after(int steps) const { return (place + steps) % each; }
  int place_before(int steps) const { return (place + each - steps) % each; }
};

}  // namespace headway::collectives
