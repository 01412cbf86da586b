// A hash of the bits of numbers. Pure functions.
#pragma once

#include <cstdint>
#include <cstring>

namespace apps {

inline uint64_t mix(uint64_t h) {
  h ^= h >> 32;
  h *= 0x9e3779b97f4a7c15u;
  h ^= h >> 29;
  return h;
}

// Of `n` numbers, beginning with `h`. Differs with their order.
inline uint64_t hash_numbers(uint64_t h, const double* numbers, long n) {
  for (long i = 0; i < n; ++i) {
    uint64_t bits;
    std::memcpy(&bits, numbers + i, sizeof bits);
    h = mix(h ^ bits);
  }
  return h;
}

}  // namespace apps
