// Kernels of logical operations on Fortran's logicals of another kind than 1 and 0. Thread: any.
#pragma once
#include <cstddef>

#include "datatypes/detail/kernel_table.h"

namespace headway::datatypes {

// Empty where the kernels of integers are right, or there is no such operation.
Kernel find_told_logical(ReduceOp op, size_t size);

}  // namespace headway::datatypes
