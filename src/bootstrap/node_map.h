// NodeMap: which node each rank was started on, from the launcher's `PMI_process_mapping`, the
// text `(vector,(first node,nodes,ranks a node),...)`. Thread: written at open, then plain reads.
// Invariant: either the whole text was understood, or the map knows nothing (node_of gives -1).
#pragma once
#include <cstddef>
#include <string_view>

namespace headway::bootstrap {

class NodeMap {
 public:
  [[nodiscard]] bool parse(std::string_view text);
  int node_of(int rank) const;

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
