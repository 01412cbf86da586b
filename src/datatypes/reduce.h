// Reduction kernels: the predefined operations on the predefined types. Thread: any. The fastest
// variant for this processor is chosen at the first look-up; all variants give the same bits for
// any alignment. Buffers need no alignment; they hold elements at the type's extent.
#pragma once
#include <cstdint>

#include "datatypes/basic.h"

namespace headway::datatypes {

enum class ReduceOp : uint8_t {
  none,
  sum,
  min,
  max,
  prod,
  band,
  bor,
  bxor,
  land,
  lor,
  lxor,
  minloc,
  maxloc,
  replace,
  no_op
};

// inout = in OP inout; `in` comes from the lower ranks. The two must not overlap.
using Reducer = void (*)(const void* in, void* inout, uint64_t count);
// out = lower OP upper. `out` may be one of the other two exactly; else no overlap.
using Reducer3 = void (*)(const void* lower, const void* upper, void* out, uint64_t count);

// The operation of an ABI handle value (MPI_SUM, ...), or none.
ReduceOp find_op(uintptr_t handle);
const char* op_name(ReduceOp op);

// True if the standard (MPI 5.0, section 6.9.2) defines the operation on that type.
bool is_standard(ReduceOp op, BasicType type);

// Null where neither the standard nor custom defines the operation on that type: MPICH and Open MPI
// also compute MPI_CHAR, as a number, and logical operations on MPI_AINT, MPI_COUNT and MPI_OFFSET.
// replace (out = lower) and no_op (out = upper) are there for every type but are legal for
// accumulates only.
Reducer find_reducer(ReduceOp op, BasicType type);
Reducer3 find_reducer3(ReduceOp op, BasicType type);

// True if any order and grouping of the operands gives the same bits. False for all operations
// on floating point: sums round, and NaNs and signed zeros make min and max depend on order.
bool is_exact(ReduceOp op, BasicType type);

}  // namespace headway::datatypes
