#include "objects/topology.h"

#include <new>
#include <utility>

#include "base/check.h"
#include "base/heap.h"

namespace headway::objects {
namespace {

// In the order of the standard: for each dimension the neighbour below and the one above.
bool list_neighbours(const Grid& grid, int rank, base::Vec<int>& ranks) {
  if (!ranks.reserve(2 * size_t(grid.dimensions()))) return false;
  for (int dimension = 0; dimension < grid.dimensions(); ++dimension) {
    const int below = grid.find_neighbour(rank, dimension, -1);
    const int above = grid.find_neighbour(rank, dimension, 1);
    if (!ranks.push(below < 0 ? no_neighbour : below)) return false;
    if (!ranks.push(above < 0 ? no_neighbour : above)) return false;
  }
  return true;
}

bool list_neighbours(const Graph& graph, int rank, base::Vec<int>& ranks) {
  for (int i = 0; i < graph.degree(rank); ++i) {
    if (!ranks.push(graph.neighbours_of(rank)[i])) return false;
  }
  return true;
}

}  // namespace

Topology::Topology(Kind kind, Edges&& edges) : kind_(kind), edges_(std::move(edges)) {
  HEADWAY_CHECK(!edges_.weighted || (edges_.source_weights.size() == edges_.sources.size() &&
                                     edges_.target_weights.size() == edges_.targets.size()));
}

Topology* Topology::place(Kind kind, Edges&& edges) {
  void* memory = base::heap_allocate(sizeof(Topology));
  return memory ? new (memory) Topology(kind, std::move(edges)) : nullptr;
}

Topology* Topology::make(Grid* grid, int rank) {
  if (!grid) return nullptr;
  Edges edges;
  Topology* made =
      list_neighbours(*grid, rank, edges.targets) ? place(Kind::grid, std::move(edges)) : nullptr;
  if (made) {
    made->grid_ = grid;
  } else {
    grid->release();
  }
  return made;
}

Topology* Topology::make(Graph* graph, int rank) {
  if (!graph) return nullptr;
  Edges edges;
  Topology* made =
      list_neighbours(*graph, rank, edges.targets) ? place(Kind::graph, std::move(edges)) : nullptr;
  if (made) {
    made->graph_ = graph;
  } else {
    graph->release();
  }
  return made;
}

Topology* Topology::make(Edges&& edges) { return place(Kind::edges, std::move(edges)); }

void Topology::release() {
  const uint32_t before = references_.fetch_sub(1, std::memory_order_acq_rel);
  HEADWAY_CHECK(before != 0);
  if (before != 1) return;
  if (grid_) grid_->release();
  if (graph_) graph_->release();
  this->~Topology();
  base::heap_free(this, sizeof(Topology));
}

}  // namespace headway::objects
