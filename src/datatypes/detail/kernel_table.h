// KernelTable: one build of the reduction kernels, for one level of vector instructions. Thread:
// any, constant data. Invariant: every table that holds a kernel computes the same bits with it.
#pragma once
#include <cstddef>

#include "datatypes/reduce.h"

namespace headway::datatypes {

inline constexpr size_t op_count = size_t(ReduceOp::no_op) + 1;
inline constexpr size_t machine_count = size_t(Machine::f64_f64) + 1;

struct Kernel {
  Reducer two = nullptr;
  Reducer3 three = nullptr;
};

struct KernelTable {
  const char* name;
  Kernel kernels[op_count][machine_count];  // null: see the base table
};

extern const KernelTable base_kernels;  // complete, for every processor
extern const KernelTable avx2_kernels;  // of x86-64 alone
inline constexpr size_t max_tables = 2;

// The tables that this processor can run, best first; the base table is the last. Returns how
// many were written to `tables`.
size_t usable_tables(const KernelTable* tables[max_tables]);

}  // namespace headway::datatypes
