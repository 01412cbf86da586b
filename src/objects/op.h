// Op: a reduction, predefined or of the user. Thread: any; immutable. Owner: reference counted
// (handle and running schedules).
#pragma once
#include <atomic>
#include <cstdint>

#include "datatypes/reduce.h"

namespace headway::objects {

struct Op {
  std::atomic<uint32_t> references{1};
  uintptr_t handle = 0;
  datatypes::ReduceOp builtin = datatypes::ReduceOp::none;
  bool commutative = true;
  bool large = false;        // the user's function takes MPI_Count (MPI_Op_create_c)
  void* function = nullptr;  // MPI_User_function or MPI_User_function_c; null if predefined

  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
};

// Takes a reference away; a user operation is freed at the last one.
void release(Op* op);

}  // namespace headway::objects
