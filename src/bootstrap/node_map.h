// NodeMap: which node each rank was started on, from the launcher's `PMI_process_mapping`, the
// text `(vector,(first node,nodes,ranks a node),...)`. Thread: written at open, then plain reads.
// Invariant: either the whole text was understood, or the map knows nothing (node_of gives -1).
#pragma once
#include <cstddef>
#include <string_view>

namespace headway::bootstrap {

// The ranks that were started on the same machine as one of them.
struct Beside {
  int first = -1;  // the lowest; -1: it is not known
  int count = 0;
};

// Of a list of ranks, as PMIx gives it: "0,1,2", or "0-2,7".
[[nodiscard]] bool parse_ranks(std::string_view text, Beside& beside);

class NodeMap {
 public:
  [[nodiscard]] bool parse(std::string_view text);
  int node_of(int rank) const;
  // Of a job of `size` ranks.
  Beside beside(int rank, int size) const;

 private:
  struct Block {
    int first_node;
    int nodes;
    int ranks_per_node;
  };
  static constexpr size_t block_max = 128;

  Block blocks_[block_max] = {};
  size_t count_ = 0;
  long ranks_per_round_ = 0;  // the blocks are dealt again and again until all ranks are placed
};

}  // namespace headway::bootstrap
