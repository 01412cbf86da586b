// Copies of a piece of a message to its place. Thread: any. From some hundred bytes on by the
// processor's string instruction, where it has a good one: it takes whole lines that another core
// has without reading them first, which is 1.6 to 4 times as fast as stores to them. It takes
// several times as long where the two addresses differ by a little more than a multiple of 4 KB
// (seen on Zen 3; any two buffers may): so not there. Libc's memcpy uses it from some KB on, there
// too.
#pragma once
#include <atomic>
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

inline constexpr size_t strings_from = 512;  // shorter ones are not worth its start

// Whether the processor has such an instruction: none, until find_string_copy() has looked, and
// none for sanitizers, which do not see what it reads and writes.
extern std::atomic<bool> has_string_copy;
void find_string_copy();

// False, and nothing is done: there is none, or not for these addresses.
inline bool string_copy([[maybe_unused]] char* to, [[maybe_unused]] const char* from,
                        [[maybe_unused]] size_t n) {
#if defined(__x86_64__)
  constexpr uintptr_t alias = 4096, close = 256;
  const uintptr_t apart =
      (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % alias;
  if (!has_string_copy.load(std::memory_order_relaxed) || (apart != 0 && apart < close))
    return false;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
  return true;
#else
  return false;
#endif
}

// Up to 16 bytes, without a call, which costs more than the copy. The two do not overlap.
inline constexpr size_t few_bytes = 16;
inline void copy_few(char* to, const char* from, size_t n) {
  const auto ends = [=](auto word) {  // the first and the last of so many bytes, which may overlap
    auto last = word;
    memcpy(&word, from, sizeof word);
    memcpy(&last, from + n - sizeof last, sizeof last);
    memcpy(to, &word, sizeof word);
    memcpy(to + n - sizeof last, &last, sizeof last);
  };
  if (n >= sizeof(uint64_t)) {
    ends(uint64_t{});
  } else if (n >= sizeof(uint32_t)) {
    ends(uint32_t{});
  } else if (n) {
    to[0] = from[0];
    to[n / 2] = from[n / 2];
    to[n - 1] = from[n - 1];
  }
}

// The two do not overlap.
inline void copy_piece(char* to, const char* from, size_t n) {
  if (n <= few_bytes) return copy_few(to, from, n);
  if (n >= strings_from && string_copy(to, from, n)) return;
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
