// Clock: monotonic time without a system call (vDSO). Thread: any.
#pragma once
#include <cstdint>
#include <time.h>

namespace headway::base {

inline uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1'000'000'000u + uint64_t(t.tv_nsec);
}

}  // namespace headway::base
