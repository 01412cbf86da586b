// Placement: which rank takes which place of a grid or graph, so that neighbours share a node
// ("reorder"): MPI 5.0, section 8.4. Thread: any. Owns nothing. Invariants: it depends on nothing
// but the arguments, which all ranks know alike; other ranks than at first are chosen only where
// less weight then crosses from node to node.
#pragma once
#include <cstdint>

#include "base/vec.h"
#include "objects/grid.h"

namespace headway::objects {

// On which nodes the ranks are: nodes are numbered in the order of their first ranks.
class NodeMembers {
 public:
  // Once. ids[rank]: by which its node is known; 0: it shares memory with nobody. False without
  // memory.
  [[nodiscard]] bool find(const uint64_t* ids, int ranks);

  int ranks() const { return int(nodes_.size()); }
  int count() const { return starts_.empty() ? 0 : int(starts_.size()) - 1; }
  int node_of(int rank) const { return nodes_[size_t(rank)]; }
  int size_of(int node) const { return starts_[size_t(node) + 1] - starts_[size_t(node)]; }
  // Rising.
  const int* members_of(int node) const { return members_.data() + starts_[size_t(node)]; }
  // Several nodes, and not one for each rank.
  bool leave_a_choice() const { return count() > 1 && count() < ranks(); }

 private:
  base::Vec<int> nodes_;    // of each rank
  base::Vec<int> starts_;   // of each node in members_, and the end
  base::Vec<int> members_;  // of the first node, of the next one, ...
};

// What two places have to say to each other.
struct Link {
  int from = 0;
  int to = 0;
  int64_t weight = 1;
};

// The weight of the links whose ends are on two nodes; ranks[place]: who takes the place, empty:
// everyone his own.
int64_t weight_across(const NodeMembers& nodes, const base::Vec<Link>& links,
                      const base::Vec<int>& ranks);

// Fills ranks[place] in, or leaves it empty where every rank keeps its own place. As many places as
// `nodes` has ranks. False without memory.
//
// A grid is cut into blocks, one a node, if all nodes have equally many ranks and such blocks fit.
[[nodiscard]] bool place_grid(const NodeMembers& nodes, const Grid& grid, base::Vec<int>& ranks);
// Node by node, each time the place is taken that has the most to say to those already there.
[[nodiscard]] bool place_links(const NodeMembers& nodes, const base::Vec<Link>& links,
                               base::Vec<int>& ranks);

}  // namespace headway::objects
