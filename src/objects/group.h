// Group: an ordered set of processes, as ranks in the job. Thread: any; immutable, the reference
// count is atomic. Owner: reference counted (handles and communicators). Invariant: no process is
// in it twice.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/outcome.h"

namespace headway::objects {

inline constexpr int undefined_rank = -32766;  // MPI_UNDEFINED; api/ asserts it

struct Group {
  std::atomic<uint32_t> references{1};
  uintptr_t handle = 0;  // predefined or from the table; 0: no handle yet
  int size = 0;
  int self = undefined_rank;  // own rank in it
  uint32_t* members = nullptr;  // rank in the job of each rank of the group

  // A group without members, of that size, for the caller to fill; then call settle(own).
  static Group* make(int size);
  // Finds the own rank once the members are in.
  void settle(uint32_t own_job_rank);
  // Rank in the group of that process, or undefined_rank.
  int find(uint32_t job_rank) const;
  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
  void release();
};

}  // namespace headway::objects
