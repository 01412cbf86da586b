// The floating-point types of which compilers disagree on the names: IEEE's of 16 and 128 bits, and
// the bytes of a long double that are not padding. Thread: any. Owner: none. Invariant: the sizes
// are those of the ABI's datatypes on every processor.
#pragma once
#include <cfloat>
#include <cstddef>

namespace headway::datatypes {

#if defined(__x86_64__)
using Half = _Float16;
using Quad = __float128;
#else
// GCC 12 has no _Float16 in C++ for AArch64; __fp16 computes in float, as the kernels do anyway.
// The long double is IEEE's of 128 bits there.
using Half = __fp16;
using Quad = long double;
#endif
static_assert(sizeof(Half) == 2 && sizeof(Quad) == 16 && sizeof(long double) == 16);

inline constexpr size_t long_double_bytes = LDBL_MANT_DIG == 64 ? 10 : 16;

}  // namespace headway::datatypes
