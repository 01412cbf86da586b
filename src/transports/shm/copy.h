// Copies for the shared segment. Thread: any. A streamed copy bypasses the cache: 2 to 4 times
// faster than a cached one when the two cores are far apart (measurements/transport-and-progress).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headway::shm {

// Writes n bytes to `to` (64-byte aligned) with non-temporal stores. The caller must fence before
// it publishes: see stream_fence().
inline void stream_copy(char* to, const char* from, size_t n) {
#if defined(__SSE2__)
  size_t at = 0;
  for (; at + 64 <= n; at += 64) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + 16));
    const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + 32));
    const __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + 48));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), a);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + 16), b);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + 32), c);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + 48), d);
  }
  if (at < n) memcpy(to + at, from + at, n - at);
#else
  memcpy(to, from, n);
#endif
}

// Copies a piece of a message to its place. libc's memcpy uses the processor's string instruction
// for such sizes, which takes five times as long when the two addresses differ by a little more
// than a multiple of 4 KB (seen on Zen 3; any two buffers may).
inline void plain_copy(char* to, const char* from, size_t n) {
#if defined(__SSE2__)
  if (n >= 1024) {
    const size_t head = (16 - reinterpret_cast<uintptr_t>(to) % 16) % 16;
    memcpy(to, from, 16);
    size_t at = head;
    for (; at + 64 <= n; at += 64) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + 16));
      const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + 32));
      const __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + 48));
      _mm_store_si128(reinterpret_cast<__m128i*>(to + at), a);
      _mm_store_si128(reinterpret_cast<__m128i*>(to + at + 16), b);
      _mm_store_si128(reinterpret_cast<__m128i*>(to + at + 32), c);
      _mm_store_si128(reinterpret_cast<__m128i*>(to + at + 48), d);
    }
    if (at < n) memcpy(to + at, from + at, n - at);
    return;
  }
#endif
  memcpy(to, from, n);
}

// Non-temporal stores are not ordered by a release store: without this half of the blocks were
// stale (measured).
inline void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace headway::shm
