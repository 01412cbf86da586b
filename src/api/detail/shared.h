// Shared: buffers that share memory where the standard wants two; what is read would be overwritten
// meanwhile. Thread: any. Owns nothing. Invariants: what is refused has a byte in common for
// certain; memory without gaps is told exactly. Of data with gaps, which may lie in one another's
// gaps, the first runs are compared: a correct program must not pay for a walk over all of them.
#pragma once
#include "api/detail/message.h"
#include "collectives/collectives.h"

namespace headway::api {

// What a collective reads or writes at this rank: one piece of data, or a block for every rank or
// neighbour.
class Side {
 public:
  explicit Side(const collectives::Data& data) : data_(data) {}
  Side(const collectives::Blocks& blocks, int ranks) : blocks_(&blocks), count_(ranks) {}
  // Blocks that are nobody's are not touched.
  Side(const collectives::Blocks& blocks, objects::Neighbours neighbours)
      : blocks_(&blocks), count_(neighbours.count), neighbours_(neighbours.ranks) {}

  int count() const { return count_; }
  bool has_blocks() const { return blocks_ != nullptr; }
  // The ranks of the blocks, if they are neighbours'; else null.
  const int* neighbours() const { return neighbours_; }
  collectives::Data operator[](int at) const {
    if (!blocks_) return data_;
    const bool is_nobodys = neighbours_ && neighbours_[at] == objects::no_neighbour;
    return is_nobodys ? collectives::Data() : (*blocks_)[at];
  }

 private:
  collectives::Data data_;
  const collectives::Blocks* blocks_ = nullptr;
  int count_ = 1;
  const int* neighbours_ = nullptr;
};

// Raises MPI_ERR_BUFFER if both have a byte in common. Empty blocks and MPI_IN_PLACE have none.
// `remedy`: null for the usual one.
int refuse_shared(const Story& story, const Side& in, const Side& out,
                  const char* remedy = nullptr);

inline int refuse_shared(const Story& story, const collectives::Data& in,
                         const collectives::Data& out, const char* remedy = nullptr) {
  if (!in.type || !out.type) return MPI_SUCCESS;
  const protocols::UserMemory from = in.memory(), to = out.memory();
  if (from.is_flat() && to.is_flat() && !share_memory(from, to)) [[likely]]
    return MPI_SUCCESS;
  return refuse_shared(story, Side(in), Side(out), remedy);
}

}  // namespace headway::api
