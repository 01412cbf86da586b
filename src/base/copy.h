// Copies of a piece of a message to its place. Thread: any. Why not memcpy: libc's uses the
// processor's string instruction for such sizes, which takes five times as long when the two
// addresses differ by a little more than a multiple of 4 KB (seen on Zen 3; any two buffers may).
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headway::base {

#if defined(__SSE2__)
// Whole lines of 64 bytes from byte `at` on, each 16 bytes by store(to, value); `to + at` must be
// aligned as that store wants it. Returns the first byte that was not copied.
template <class Store>
size_t copy_lines(char* to, const char* from, size_t at, size_t n, Store store) {
  for (; at + 64 <= n; at += 64) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + 16));
    const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + 32));
    const __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + 48));
    store(reinterpret_cast<__m128i*>(to + at), a);
    store(reinterpret_cast<__m128i*>(to + at + 16), b);
    store(reinterpret_cast<__m128i*>(to + at + 32), c);
    store(reinterpret_cast<__m128i*>(to + at + 48), d);
  }
  return at;
}
#endif

inline void plain_copy(char* to, const char* from, size_t n) {
#if defined(__SSE2__)
  if (n >= 1024) {
    memcpy(to, from, 16);  // up to the first aligned place
    const size_t head = (16 - reinterpret_cast<uintptr_t>(to) % 16) % 16;
    const size_t at = copy_lines(
        to, from, head, n, [](__m128i* place, __m128i value) { _mm_store_si128(place, value); });
    if (at < n) memcpy(to + at, from + at, n - at);
    return;
  }
#endif
  memcpy(to, from, n);
}

}  // namespace headway::base
