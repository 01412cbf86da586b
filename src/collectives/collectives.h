// Collectives: each function builds the schedule of one call. Thread: any application thread,
// without the engine. Owns nothing: the caller starts or runs the schedule. Null without memory.
// Invariants: arguments were checked by api/; buffers are as MPI says (in_place is resolved by the
// caller to the same buffer for both); inexact and non-commutative reductions follow one fixed
// tree over rank numbers, whatever the algorithm, so that results are bit-identical.
#pragma once
#include <cstdint>

#include "collectives/schedule.h"

namespace headway::collectives {

// A user's buffer of `count` elements of `type`.
struct Data {
  void* buffer = nullptr;
  uint64_t count = 0;
  const datatypes::Type* type = nullptr;

  UserMemory memory() const { return {buffer, count, *type}; }
  // `n` elements from element `first` on.
  Data part(uint64_t first, uint64_t n) const {
    return {static_cast<char*>(buffer) + int64_t(first) * type->extent(), n, type};
  }
};

Schedule* barrier(protocols::Engine& engine, objects::Comm* comm);
Schedule* bcast(protocols::Engine& engine, objects::Comm* comm, const Data& data, int root);
// in.buffer == out.buffer stands for MPI_IN_PLACE.
Schedule* reduce(protocols::Engine& engine, objects::Comm* comm, const Data& in, const Data& out,
                 const Reduction& reduction, int root);
Schedule* allreduce(protocols::Engine& engine, objects::Comm* comm, const Data& in,
                    const Data& out, const Reduction& reduction);

}  // namespace headway::collectives
