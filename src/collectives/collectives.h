// Collectives: each function builds the schedule of one call. Thread: any application thread,
// without the engine. Owns nothing: the caller starts or runs the schedule. Null without memory.
// Invariants: arguments were checked by api/; inexact and non-commutative reductions follow one
// fixed tree over rank numbers, whatever the algorithm, so that results are bit-identical; scans
// follow a fixed association of their own (scan.cc). Between two ranks the messages of one schedule
// are sent in the order in which they are received.
#pragma once
#include <cstdint>

#include "base/address.h"
#include "collectives/algorithms.h"
#include "collectives/schedule.h"

namespace headway::collectives {

// A user's buffer of `count` elements of `type`. Without a type it stands for MPI_IN_PLACE, or for
// an argument that means nothing at this rank.
struct Data {
  void* buffer = nullptr;
  uint64_t count = 0;
  const datatypes::Type* type = nullptr;

  UserMemory memory() const { return type ? UserMemory(buffer, count, *type) : UserMemory(); }
  uint64_t bytes() const { return type ? count * type->size() : 0; }
  // `n` elements from element `first` on.
  Data part(uint64_t first, uint64_t n) const {
    return {base::element_at(buffer, first, type->extent()), n, type};
  }
};

// A user's buffer with a block for every rank: blocks of one length side by side, or with lengths
// and places of their own (places in extents of the type), or with types of their own (places in
// bytes; the type of an empty block may be null). Without a type: as in Data.
class Blocks {
 public:
  Blocks() = default;
  static Blocks even(void* buffer, uint64_t count, const datatypes::Type* type) {
    Blocks blocks;
    blocks.set_even(buffer, count, type);
    return blocks;
  }
  // The same of one that is empty so far, in its place. Small calls cannot afford even(): a copy of
  // what was written a moment ago in other pieces waits until all of that has left the processor.
  void set_even(void* buffer, uint64_t count, const datatypes::Type* type) {
    buffer_ = static_cast<char*>(buffer);
    count_ = count;
    type_ = type;
  }
  static Blocks uneven(void* buffer, datatypes::Integers counts, datatypes::Integers places,
                       const datatypes::Type* type) {
    Blocks blocks = even(buffer, 0, type);
    blocks.uneven_ = true;
    blocks.counts_ = counts;
    blocks.places_ = places;
    return blocks;
  }
  static Blocks typed(void* buffer, datatypes::Integers counts, datatypes::Integers places,
                      const datatypes::Type* const* types) {
    Blocks blocks = uneven(buffer, counts, places, nullptr);
    blocks.types_ = types;
    return blocks;
  }

  bool in_place() const { return !type_ && !types_; }
  Data operator[](int rank) const {
    if (in_place()) return {};
    if (!uneven_) {
      const uint64_t first = count_ * uint64_t(rank);
      return {base::element_at(buffer_, first, type_->extent()), count_, type_};
    }
    const uint64_t count = uint64_t(counts_[uint64_t(rank)]);
    const int64_t place = places_[uint64_t(rank)];
    if (types_) return {base::moved(buffer_, place), count, types_[rank]};
    return {base::element_at(buffer_, uint64_t(place), type_->extent()), count, type_};
  }
  // Even blocks: those of `n` ranks from `first` on, as one.
  Data range(int first, int n) const {
    return {(*this)[first].buffer, count_ * uint64_t(n), type_};
  }
  const datatypes::Type* type() const { return type_; }
  void keep(Schedule& schedule, int ranks) const {
    if (type_) schedule.keep(type_);
    for (int rank = 0; types_ && rank < ranks; ++rank) {
      if (types_[rank]) schedule.keep(types_[rank]);
    }
  }

 private:
  char* buffer_ = nullptr;
  uint64_t count_ = 0;
  const datatypes::Type* type_ = nullptr;
  bool uneven_ = false;
  datatypes::Integers counts_, places_;
  const datatypes::Type* const* types_ = nullptr;
};

// Where a collective takes place, and which algorithms its user wants.
struct Place {
  protocols::Engine& engine;
  objects::Comm* comm;
  const Forced& forced;

  Team team() const { return comm->own; }
  Team others() const { return comm->others; }  // of an inter-communicator, else the same
  bool is_inter() const { return comm->is_inter(); }
  Algorithm choose(Kind kind, uint64_t bytes) const {
    return collectives::choose(forced, kind, team().size, bytes, sharing_of(engine, comm));
  }
  int ranks_a_node() const { return ranks_a_node_of(engine, comm); }
  // By which the node of a rank is known; 0: it is not.
  uint64_t node_of(int rank) const { return collectives::node_of(engine, comm, rank); }
};

// On an inter-communicator (inter.h) a root is what MPI says there, and nothing is in place.
Schedule* barrier(const Place& place);
Schedule* bcast(const Place& place, const Data& data, int root);

// At ranks other than the root, `out` (gather) or `in` (scatter) means nothing.
Schedule* gather(const Place& place, const Data& in, const Blocks& out, int root);
Schedule* gatherv(const Place& place, const Data& in, const Blocks& out, int root);
Schedule* scatter(const Place& place, const Blocks& in, const Data& out, int root);
Schedule* scatterv(const Place& place, const Blocks& in, const Data& out, int root);
Schedule* allgather(const Place& place, const Data& in, const Blocks& out);
Schedule* allgatherv(const Place& place, const Data& in, const Blocks& out);
// in.in_place(): the blocks of `out` are exchanged.
Schedule* alltoall(const Place& place, const Blocks& in, const Blocks& out);
// alltoallv and alltoallw.
Schedule* alltoallv(const Place& place, const Blocks& in, const Blocks& out, Kind kind);

// in.buffer == out.buffer stands for MPI_IN_PLACE.
Schedule* reduce(const Place& place, const Data& in, const Data& out, const Reduction& reduction,
                 int root);
Schedule* allreduce(const Place& place, const Data& in, const Data& out,
                    const Reduction& reduction);
// `in` holds the blocks of all ranks, counts[rank] elements each, side by side.
Schedule* reduce_scatter(const Place& place, const Data& in, void* out, datatypes::Integers counts,
                         const Reduction& reduction);
Schedule* reduce_scatter_block(const Place& place, const Data& in, void* out, uint64_t count,
                               const Reduction& reduction);
Schedule* scan(const Place& place, const Data& in, const Data& out, const Reduction& reduction);
Schedule* exscan(const Place& place, const Data& in, const Data& out, const Reduction& reduction);

// With the communicator's topology (neighbours.cc), which fits both ways: a block for each edge, in
// the order of Topology::targets and sources. Blocks of nobody are not touched.
Schedule* neighbor_allgather(const Place& place, const Data& in, const Blocks& out, Kind kind);
Schedule* neighbor_alltoall(const Place& place, const Blocks& in, const Blocks& out, Kind kind);

// For the library's own use, by the table alone.
inline constexpr Forced nothing_forced{};
inline Schedule* bcast(protocols::Engine& engine, objects::Comm* comm, const Data& data, int root) {
  return bcast({engine, comm, nothing_forced}, data, root);
}
inline Schedule* allreduce(protocols::Engine& engine, objects::Comm* comm, const Data& in,
                           const Data& out, const Reduction& reduction) {
  return allreduce({engine, comm, nothing_forced}, in, out, reduction);
}

}  // namespace headway::collectives
