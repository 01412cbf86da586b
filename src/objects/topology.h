// Topology: the neighbours of this rank in a communicator: MPI 5.0, chapter 8. A grid, a graph
// that all ranks know, or edges of which each rank knows its own: collectives of neighbours see two
// lists of ranks. Thread: any; immutable, the reference count is atomic. Owner: reference counted:
// each communicator that has it, for a duplicate has the same ranks. Invariants: the blocks of a
// collective are in the order of the lists; where several edges lead from one rank to another, both
// have them in the same order, that of received().
#pragma once
#include <atomic>
#include <cstdint>

#include "base/vec.h"
#include "objects/graph.h"
#include "objects/grid.h"
#include "settings/abi_constants.h"

namespace headway::objects {

inline constexpr int no_neighbour = abi::k_PROC_NULL;  // beyond the edge of a grid

// This rank's edges, each end in the order of its blocks.
struct Edges {
  base::Vec<int> sources, targets;
  base::Vec<int> source_weights, target_weights;  // as long as those, or empty: not weighted
  bool weighted = false;
  bool complete = true;  // of this rank: there was memory for its lists
  bool match = true;     // on all ranks: both ends have named each edge, equally often

  bool empty() const { return sources.empty() && targets.empty(); }
};

struct Neighbours {
  const int* ranks = nullptr;
  int count = 0;

  int operator[](int at) const { return ranks[at]; }
};

class Topology {
 public:
  enum class Kind : uint8_t { grid, graph, edges };

  // Each takes over what it is given, `rank` being this one's place in it. Null without memory, and
  // then what was given is gone, too.
  static Topology* make(Grid* grid, int rank);
  static Topology* make(Graph* graph, int rank);
  static Topology* make(Edges&& edges);
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release();

  Kind kind() const { return kind_; }
  const Grid* grid() const { return grid_; }     // null: it is none
  const Graph* graph() const { return graph_; }  // null: it is none
  bool is_weighted() const { return edges_.weighted; }

  // Who sends to this rank, and to whom it sends.
  Neighbours sources() const {
    return list(kind_ == Kind::edges ? edges_.sources : edges_.targets);
  }
  Neighbours targets() const { return list(edges_.targets); }
  const int* source_weights() const { return edges_.source_weights.data(); }
  const int* target_weights() const { return edges_.target_weights.data(); }

  // The place among the sources from which this rank receives as number `turn`, so that between two
  // ranks blocks are received in the order in which they are sent. What goes one way in a dimension
  // of a grid comes from the other way, also where both lead to the same rank.
  int received(int turn) const { return kind_ == Kind::grid ? turn ^ 1 : turn; }
  // Whether each rank sends along as many edges as the other receives from it. All ranks know
  // alike.
  bool fits_both_ways() const { return graph_ ? graph_->is_symmetric() : edges_.match; }

 private:
  Topology(Kind kind, Edges&& edges);
  static Topology* place(Kind kind, Edges&& edges);
  static Neighbours list(const base::Vec<int>& ranks) { return {ranks.data(), int(ranks.size())}; }

  std::atomic<uint32_t> references_{1};
  const Kind kind_;
  Grid* grid_ = nullptr;
  Graph* graph_ = nullptr;
  Edges edges_;  // of a grid and a graph the targets alone: the sources are the same ranks
};

}  // namespace headway::objects
