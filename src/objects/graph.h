// Graph: the topology of MPI_Graph_create: the neighbours of all nodes, which every rank knows: MPI
// 5.0, section 8.5.3. Thread: any; immutable. Owner: the topology that has it. Invariant: no index
// is below the one before it, and every neighbour is a node: api/ has looked.
#pragma once
#include <cstddef>

namespace headway::objects {

class Graph {
 public:
  // index[node]: how many neighbours that node and those before it have. Null without memory.
  static Graph* make(int nodes, const int* index, const int* edges);
  void release();

  int nodes() const { return nodes_; }
  int edges() const { return edges_; }
  int first_of(int node) const { return node == 0 ? 0 : index()[node - 1]; }
  int degree(int node) const { return index()[node] - first_of(node); }
  const int* neighbours_of(int node) const { return all_neighbours() + first_of(node); }
  const int* index() const { return reinterpret_cast<const int*>(this + 1); }
  const int* all_neighbours() const { return index() + nodes_; }
  // Each node names every other one as often as that one names it: what collectives of neighbours
  // ask for.
  bool is_symmetric() const { return symmetric_; }

 private:
  int* numbers() { return reinterpret_cast<int*>(this + 1); }

  int nodes_ = 0;
  int edges_ = 0;
  bool symmetric_ = false;
};

}  // namespace headway::objects
