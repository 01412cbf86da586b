// Addresses as numbers: places that a program gives by a displacement, an extent or a bound, which
// need not lie in one object with the address that they count from (MPI_BOTTOM is none at all), and
// which may be wrong. Thread: any. Owns nothing. Invariant: nothing here overflows.
#pragma once
#include <cstdint>

namespace headway::base {

// No address space of a program is larger (x86-64 with five levels of page tables): what is to have
// more bytes is a mistake. Sums and products of a few such numbers stay within 63 bits.
inline constexpr uint64_t most_bytes = uint64_t(1) << 56;

inline char* moved(const void* from, int64_t by) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(from) + uintptr_t(by));
}

// The place of element `index`, each `extent` bytes.
inline char* element_at(const void* first, uint64_t index, int64_t extent) {
  return moved(first, int64_t(index * uint64_t(extent)));
}

// True if `index` extents lead to a place that an address space may have.
inline bool leads_somewhere(int64_t index, int64_t extent) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(index, extent, &bytes)) return false;
  return bytes >= -int64_t(most_bytes) && bytes <= int64_t(most_bytes);
}

}  // namespace headway::base
