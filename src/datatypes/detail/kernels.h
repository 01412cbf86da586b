// The reduction kernels as templates, compiled once per level of vector instructions: a file
// kernels_x.cc selects the level by a target pragma and then includes this one. Everything here
// has internal linkage, so that no build of a kernel can stand in for another. Element by element
// and without fused multiply-add: the vector width cannot change a bit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "datatypes/detail/floats.h"
#include "datatypes/detail/kernel_table.h"

#pragma GCC optimize("O3,fp-contract=off")

namespace headway::datatypes {
namespace {

// An element at any address, of whatever type the program declared it.
template <class T>
struct [[gnu::packed, gnu::may_alias]] Loose {
  T value;
};

template <class T>
struct Complex {
  T re, im;
};

template <class V, class I>
struct Located {
  V value;
  I index;
};

template <Machine machine>
struct MachineType;
#define HEADWAY_MACHINE(name, ...)    \
  template <>                         \
  struct MachineType<Machine::name> { \
    using type = __VA_ARGS__;         \
  }
HEADWAY_MACHINE(i8, int8_t);
HEADWAY_MACHINE(u8, uint8_t);
HEADWAY_MACHINE(i16, int16_t);
HEADWAY_MACHINE(u16, uint16_t);
HEADWAY_MACHINE(i32, int32_t);
HEADWAY_MACHINE(u32, uint32_t);
HEADWAY_MACHINE(i64, int64_t);
HEADWAY_MACHINE(u64, uint64_t);
HEADWAY_MACHINE(i128, __int128);
HEADWAY_MACHINE(u128, unsigned __int128);
HEADWAY_MACHINE(f16, Half);
HEADWAY_MACHINE(f32, float);
HEADWAY_MACHINE(f64, double);
HEADWAY_MACHINE(f80, long double);
HEADWAY_MACHINE(f128, Quad);
HEADWAY_MACHINE(c16, Complex<Half>);
HEADWAY_MACHINE(c32, Complex<float>);
HEADWAY_MACHINE(c64, Complex<double>);
HEADWAY_MACHINE(c80, Complex<long double>);
HEADWAY_MACHINE(c128, Complex<Quad>);
HEADWAY_MACHINE(f32_i32, Located<float, int32_t>);
HEADWAY_MACHINE(f64_i32, Located<double, int32_t>);
HEADWAY_MACHINE(i64_i32, Located<int64_t, int32_t>);
HEADWAY_MACHINE(i32_i32, Located<int32_t, int32_t>);
HEADWAY_MACHINE(i16_i32, Located<int16_t, int32_t>);
HEADWAY_MACHINE(f80_i32, Located<long double, int32_t>);
HEADWAY_MACHINE(f32_f32, Located<float, float>);
HEADWAY_MACHINE(f64_f64, Located<double, double>);
#undef HEADWAY_MACHINE

constexpr bool is_integer(Machine m) { return m >= Machine::i8 && m <= Machine::u128; }
constexpr bool is_real(Machine m) { return m >= Machine::f16 && m <= Machine::f128; }
constexpr bool is_complex(Machine m) { return m >= Machine::c16 && m <= Machine::c128; }
constexpr bool is_pair(Machine m) { return m >= Machine::f32_i32; }
constexpr bool is_vectorised(Machine m) {
  return (m >= Machine::i8 && m <= Machine::u64) || m == Machine::f32 || m == Machine::f64 ||
         m == Machine::c32 || m == Machine::c64;
}

// Half precision computes in float and rounds once; others compute in their own type.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, Half>, float, T>;

// Integers wrap around, as the processor's do: computed unsigned, and wide enough that the
// promotion of short types cannot overflow.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 16, unsigned __int128,
                                    std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

template <ReduceOp op, Machine machine>
constexpr bool has_kernel() {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod: return is_integer(machine) || is_real(machine) || is_complex(machine);
    case ReduceOp::min:
    case ReduceOp::max: return is_integer(machine) || is_real(machine);
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
    case ReduceOp::land:
    case ReduceOp::lor:
    case ReduceOp::lxor: return is_integer(machine);
    case ReduceOp::minloc:
    case ReduceOp::maxloc: return is_pair(machine);
    default: return false;
  }
}

template <ReduceOp op, class T>
inline T integer(T a, T b) {
  using W = Wrapping<T>;
  switch (op) {
    case ReduceOp::sum: return T(W(a) + W(b));
    case ReduceOp::prod: return T(W(a) * W(b));
    case ReduceOp::min: return a < b ? a : b;
    case ReduceOp::max: return a > b ? a : b;
    case ReduceOp::band: return T(a & b);
    case ReduceOp::bor: return T(a | b);
    case ReduceOp::bxor: return T(a ^ b);
    case ReduceOp::land: return T((a != 0) & (b != 0));
    case ReduceOp::lor: return T((a | b) != 0);
    default: return T((a != 0) ^ (b != 0));
  }
}

template <ReduceOp op, class T>
inline T real(T a, T b) {
  using W = Wide<T>;
  switch (op) {
    case ReduceOp::sum: return T(W(a) + W(b));
    case ReduceOp::prod: return T(W(a) * W(b));
    case ReduceOp::min: return a < b ? a : b;
    default: return a > b ? a : b;
  }
}

template <ReduceOp op, Machine machine>
void combine(const void* lower, const void* upper, void* result, uint64_t count) {
  using T = typename MachineType<machine>::type;
  auto* a = static_cast<const Loose<T>*>(lower);
  auto* b = static_cast<const Loose<T>*>(upper);
  auto* out = static_cast<Loose<T>*>(result);
  if constexpr (is_integer(machine) || is_real(machine)) {
    // ivdep: `out` is one of the inputs or apart from both, see the contract in reduce.h.
#pragma GCC ivdep
    for (uint64_t i = 0; i < count; ++i) {
      if constexpr (is_integer(machine)) {
        out[i].value = integer<op, T>(a[i].value, b[i].value);
      } else {
        out[i].value = real<op, T>(a[i].value, b[i].value);
      }
    }
  } else if constexpr (is_complex(machine)) {
    using Part = decltype(T::re);
    using W = Wide<Part>;
#pragma GCC ivdep
    for (uint64_t i = 0; i < count; ++i) {
      const W ar = W(a[i].value.re), ai = W(a[i].value.im);
      const W br = W(b[i].value.re), bi = W(b[i].value.im);
      if constexpr (op == ReduceOp::sum) {
        out[i].value.re = Part(ar + br);
        out[i].value.im = Part(ai + bi);
      } else {
        out[i].value.re = Part(ar * br - ai * bi);
        out[i].value.im = Part(ar * bi + ai * br);
      }
    }
  } else {
    for (uint64_t i = 0; i < count; ++i) {
      const auto av = a[i].value.value, bv = b[i].value.value;
      const auto an = a[i].value.index, bn = b[i].value.index;
      const bool first = op == ReduceOp::minloc ? av < bv : av > bv;
      // Stored part by part: the gap between and after them is not ours to write.
      out[i].value.value = first ? av : bv;
      out[i].value.index = first ? an : (av == bv && an < bn ? an : bn);
    }
  }
}

template <ReduceOp op, Machine machine>
void combine_into(const void* in, void* inout, uint64_t count) {
  combine<op, machine>(in, inout, inout, count);
}

template <bool vectorised_only>
struct Fill {
  template <ReduceOp op, Machine machine>
  static constexpr Kernel kernel() {
    if constexpr (has_kernel<op, machine>() && (!vectorised_only || is_vectorised(machine))) {
      return {combine_into<op, machine>, combine<op, machine>};
    } else {
      return {};
    }
  }

  template <size_t op, size_t... machines>
  static constexpr void row(KernelTable& table, std::index_sequence<machines...>) {
    ((table.kernels[op][machines] = kernel<ReduceOp(op), Machine(machines)>()), ...);
  }

  template <size_t... ops>
  static constexpr KernelTable table(const char* name, std::index_sequence<ops...>) {
    KernelTable result{name, {}};
    (row<ops>(result, std::make_index_sequence<machine_count>{}), ...);
    return result;
  }
};

}  // namespace

}  // namespace headway::datatypes
