// Clock: monotonic time without a system call (vDSO), and a counter that costs less to read.
// Thread: any.
#pragma once
#include <cstdint>
#include <time.h>

namespace headway::base {

inline uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1'000'000'000u + uint64_t(t.tv_nsec);
}

// Steps of a counter that runs evenly, of unknown length.
inline uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return now_ns();
#endif
}

}  // namespace headway::base
