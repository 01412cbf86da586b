// Grid: the Cartesian topology of a communicator: MPI 5.0, section 8.5. Ranks are in row-major
// order. Thread: any; immutable, the reference count is atomic. Owner: reference counted: the
// topology that has it. Invariant: every length is 1 or more, and their product fits an int.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/vec.h"

namespace headway::objects {

class Grid {
 public:
  // Null without memory. The lengths must fit: see volume_of().
  static Grid* make(int dimensions, const int* lengths, const int* periods);
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release();

  int dimensions() const { return dimensions_; }
  int volume() const { return volume_; }
  int length(int dimension) const { return lengths()[dimension]; }
  bool periodic(int dimension) const { return lengths()[dimensions_ + dimension] != 0; }

  void find_coordinates(int rank, int* coordinates) const;
  // The rank there; periodic dimensions wrap. -1: outside of the grid.
  int find_rank(const int* coordinates) const;
  // The rank `distance` steps from `rank` in one dimension, or -1: outside of the grid.
  int find_neighbour(int rank, int dimension, int64_t distance) const;

 private:
  const int* lengths() const { return reinterpret_cast<const int*>(this + 1); }
  int* lengths() { return reinterpret_cast<int*>(this + 1); }

  std::atomic<uint32_t> references_{1};
  int dimensions_ = 0;
  int volume_ = 1;
};

// Places in such a grid; -1: a length is below 1, or there are more than an int counts.
int volume_of(int dimensions, const int* lengths);

// Sets the lengths that are 0 so that `places` is the product of all, as near to one another as can
// be and in falling order. What counts: the smallest range (largest - smallest) of the lengths set
// here, then the smallest largest one, then the smallest next one, and so on. False: a length is
// negative, or the product of the others does not divide `places`.
[[nodiscard]] bool balance(int places, int dimensions, int* lengths);

}  // namespace headway::objects
