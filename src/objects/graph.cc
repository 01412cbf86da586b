#include "objects/graph.h"

#include <algorithm>
#include <cstdint>
#include <new>

#include "base/check.h"
#include "base/heap.h"
#include "base/vec.h"

namespace headway::objects {
namespace {

size_t bytes_of(int nodes, int edges) {
  return sizeof(Graph) + (size_t(nodes) + size_t(edges)) * sizeof(int);
}

uint64_t pair_of(int from, int to) { return uint64_t(uint32_t(from)) << 32 | uint32_t(to); }

// The edges, and the same edges turned round, are equal lists once both are sorted.
bool find_symmetry(const Graph& graph, bool& symmetric) {
  base::Vec<uint64_t> there, back;
  if (!there.reserve(size_t(graph.edges())) || !back.reserve(size_t(graph.edges()))) return false;
  for (int node = 0; node < graph.nodes(); ++node) {
    for (int i = 0; i < graph.degree(node); ++i) {
      const int other = graph.neighbours_of(node)[i];
      (void)there.push(pair_of(node, other));
      (void)back.push(pair_of(other, node));
    }
  }
  std::sort(there.begin(), there.end());
  std::sort(back.begin(), back.end());
  symmetric = std::equal(there.begin(), there.end(), back.begin());
  return true;
}

}  // namespace

Graph* Graph::make(int nodes, const int* index, const int* edges) {
  const int count = nodes == 0 ? 0 : index[nodes - 1];
  void* memory = base::heap_allocate(bytes_of(nodes, count));
  if (!memory) return nullptr;
  auto* made = new (memory) Graph;
  made->nodes_ = nodes;
  made->edges_ = count;
  std::copy(index, index + nodes, made->numbers());
  std::copy(edges, edges + count, made->numbers() + nodes);
  for (int i = 0; i < count; ++i) HEADWAY_CHECK(edges[i] >= 0 && edges[i] < nodes);
  if (find_symmetry(*made, made->symmetric_)) return made;
  made->release();
  return nullptr;
}

void Graph::release() { base::heap_free(this, bytes_of(nodes_, edges_)); }

}  // namespace headway::objects
