#include "datatypes/reduce.h"

#include <atomic>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "datatypes/detail/kernel_table.h"
#include "datatypes/detail/logical_kernels.h"

namespace headway::datatypes {
namespace {

struct OpInfo {
  uint16_t handle;  // the ABI's handle value
  const char* name;
};

constexpr OpInfo op_table[op_count] = {
    {0x20, "MPI_OP_NULL"}, {0x21, "MPI_SUM"},     {0x22, "MPI_MIN"},  {0x23, "MPI_MAX"},
    {0x24, "MPI_PROD"},    {0x28, "MPI_BAND"},    {0x29, "MPI_BOR"},  {0x2a, "MPI_BXOR"},
    {0x30, "MPI_LAND"},    {0x31, "MPI_LOR"},     {0x32, "MPI_LXOR"}, {0x38, "MPI_MINLOC"},
    {0x39, "MPI_MAXLOC"},  {0x3c, "MPI_REPLACE"}, {0x3d, "MPI_NO_OP"}};

// Which groups of datatypes the standard defines an operation on.
bool is_standard_on(ReduceOp op, BasicClass group) {
  const bool integer = group == BasicClass::c_integer || group == BasicClass::fortran_integer;
  const bool address = group == BasicClass::multi_language;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod:
      return integer || address || group == BasicClass::real || group == BasicClass::complex;
    case ReduceOp::min:
    case ReduceOp::max: return integer || address || group == BasicClass::real;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor: return integer || address || group == BasicClass::byte;
    case ReduceOp::land:
    case ReduceOp::lor:
    case ReduceOp::lxor: return group == BasicClass::c_integer || group == BasicClass::logical;
    case ReduceOp::minloc:
    case ReduceOp::maxloc: return group == BasicClass::pair;
    default: return false;
  }
}

// What the standard leaves out and both MPICH and Open MPI compute; tried with all pairs of
// predefined operations and types.
bool is_customary(ReduceOp op, BasicType type) {
  const bool logical = op == ReduceOp::land || op == ReduceOp::lor || op == ReduceOp::lxor;
  const bool located = op == ReduceOp::minloc || op == ReduceOp::maxloc;
  return type == BasicType::char_ ? !located
                                  : logical && info(type).group == BasicClass::multi_language;
}

// replace and no_op copy elements. A pair's second part may lie behind a gap, and its end before
// the next element: those bytes are not touched.
template <size_t first, size_t second_at, size_t second, size_t extent>
void copy_elements(const void* from, void* to, uint64_t count) {
  if (from == to || count == 0) return;
  if constexpr (second == 0 || first + second == extent) {
    memcpy(to, from, count * extent);
  } else {
    auto* in = static_cast<const char*>(from);
    auto* out = static_cast<char*>(to);
    for (uint64_t i = 0; i < count; ++i, in += extent, out += extent) {
      memcpy(out, in, first);
      memcpy(out + second_at, in + second_at, second);
    }
  }
}

using Copy = void (*)(const void* from, void* to, uint64_t count);

template <Copy copy>
void take_lower(const void* lower, const void*, void* out, uint64_t count) {
  copy(lower, out, count);
}
template <Copy copy>
void take_upper(const void*, const void* upper, void* out, uint64_t count) {
  copy(upper, out, count);
}
void keep_inout(const void*, void*, uint64_t) {}

template <Copy copy>
Kernel copying(ReduceOp op) {
  if (op == ReduceOp::replace) return {copy, take_lower<copy>};
  return {keep_inout, take_upper<copy>};
}

Kernel find_copy(ReduceOp op, const BasicInfo& row) {
  switch (row.machine) {
    case Machine::f64_i32:
    case Machine::i64_i32: return copying<copy_elements<8, 8, 4, 16>>(op);
    case Machine::i16_i32: return copying<copy_elements<2, 4, 4, 8>>(op);
    case Machine::f80_i32: return copying<copy_elements<16, 16, 4, 32>>(op);
    default: break;
  }
  switch (row.extent) {
    case 1: return copying<copy_elements<1, 0, 0, 1>>(op);
    case 2: return copying<copy_elements<2, 0, 0, 2>>(op);
    case 4: return copying<copy_elements<4, 0, 0, 4>>(op);
    case 8: return copying<copy_elements<8, 0, 0, 8>>(op);
    case 16: return copying<copy_elements<16, 0, 0, 16>>(op);
    case 32: return copying<copy_elements<32, 0, 0, 32>>(op);
    default: return {};
  }
}

#if defined(__x86_64__)
// By the instruction itself: __builtin_cpu_supports brings a global constructor of libgcc.
bool has_avx2() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
  if (!(c & bit_OSXSAVE) || !(c & bit_AVX)) return false;
  // The kernel has to save the wide registers, too (bits 1 and 2 of the enabled state).
  uint32_t enabled, high;
  asm volatile("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
  if ((enabled & 6) != 6) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}
#endif

const KernelTable& best_table() {
  static constinit std::atomic<const KernelTable*> chosen{nullptr};
  // Relaxed: the tables are constants, and every thread that finds null finds the same answer.
  const KernelTable* table = chosen.load(std::memory_order_relaxed);
  if (!table) [[unlikely]] {
    const KernelTable* tables[max_tables];
    usable_tables(tables);
    table = tables[0];
    chosen.store(table, std::memory_order_relaxed);
  }
  return *table;
}

Kernel find_kernel(ReduceOp op, BasicType type) {
  if (type == BasicType::none || op == ReduceOp::none) return {};
  const BasicInfo& row = info(type);
  if (op == ReduceOp::replace || op == ReduceOp::no_op) return find_copy(op, row);
  if (!is_standard_on(op, row.group) && !is_customary(op, type)) return {};
  if (row.group == BasicClass::logical && type != BasicType::c_bool &&
      type != BasicType::cxx_bool) {
    if (const Kernel told = find_told_logical(op, row.extent); told.two) return told;
  }
  const Kernel& best = best_table().kernels[size_t(op)][size_t(row.machine)];
  return best.two ? best : base_kernels.kernels[size_t(op)][size_t(row.machine)];
}

}  // namespace

size_t usable_tables(const KernelTable* tables[max_tables]) {
  size_t n = 0;
#if defined(__x86_64__)
  if (has_avx2()) tables[n++] = &avx2_kernels;
#endif
  tables[n++] = &base_kernels;
  return n;
}

ReduceOp find_op(uintptr_t handle) {
  for (size_t op = 1; op < op_count; ++op) {
    if (op_table[op].handle == handle) return ReduceOp(op);
  }
  return ReduceOp::none;
}

bool is_standard(ReduceOp op, BasicType type) {
  return type != BasicType::none && is_standard_on(op, info(type).group);
}

const char* op_name(ReduceOp op) { return op_table[size_t(op)].name; }

Reducer find_reducer(ReduceOp op, BasicType type) { return find_kernel(op, type).two; }

Reducer3 find_reducer3(ReduceOp op, BasicType type) { return find_kernel(op, type).three; }

bool is_exact(ReduceOp op, BasicType type) {
  switch (op) {
    case ReduceOp::replace:
    case ReduceOp::no_op: return false;  // they depend on who is the lower one
    default: break;
  }
  switch (info(type).group) {
    case BasicClass::real:
    case BasicClass::complex: return false;
    case BasicClass::pair:
      return type == BasicType::two_int || type == BasicType::two_integer ||
             type == BasicType::long_int || type == BasicType::short_int;
    default: return true;
  }
}

}  // namespace headway::datatypes
