// Group: an ordered set of processes, by their numbers (protocols/peers.h: of the own job these are
// the ranks). Thread: any; immutable, the reference count is atomic. Owner: reference counted
// (handles and communicators). Invariant: no process is in it twice.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/outcome.h"
#include "base/vec.h"
#include "objects/session.h"

namespace headway::objects {

inline constexpr int undefined_rank = -32766;  // MPI_UNDEFINED; api/ asserts it

enum class Likeness : uint8_t { identical, similar, different };  // similar: in another order

struct Group {
  std::atomic<uint32_t> references{1};
  uintptr_t handle = 0;  // of a predefined group; others get a new handle each time they are given
  int size = 0;
  int self = undefined_rank;    // own rank in it
  uint32_t* members = nullptr;  // the process that each rank of the group is
  Session* session = nullptr;   // that it comes from, if any

  // A group without members, of that size, for the caller to fill; then call find_self(own).
  static Group* make(int size);
  // `from` may be null; takes a reference.
  void belong(Session* from) {
    session = from;
    if (from) from->retain();
  }
  // Finds the own rank once the members are in.
  void find_self(uint32_t own);
  // Rank in the group of that process, or undefined_rank. For many look-ups: GroupIndex.
  int find(uint32_t process) const;
  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
  void release();
};

// Where each process stands in a group: one pass to build, then one step a look-up.
// Thread: that of its owner, on whose stack it lives.
class GroupIndex {
 public:
  Outcome build(const Group& group);
  int find(uint32_t process) const { return has(process) ? places_[process] - 1 : undefined_rank; }
  bool has(uint32_t process) const { return process < places_.size() && places_[process] != 0; }

 private:
  base::Vec<int> places_;  // rank in the group + 1, or 0
};

Outcome compare(const Group& a, const Group& b, Likeness& likeness);
// The first rank of `b` whose process is in `a`, too, or undefined_rank.
Outcome find_shared(const Group& a, const Group& b, int& rank);

}  // namespace headway::objects
