// Words: numbers of 64 bits that ranks combine, and fingerprints by which they find that they gave
// different things. Thread: any application thread, without the engine. Owns nothing. Invariant:
// equal things have equal fingerprints; different ones, by chance, once in 2^64.
#pragma once
#include <cstdint>

#include "communicators/communicators.h"

namespace headway::communicators {

enum class Combine : uint8_t { sum, largest };

// All ranks get what their words make together, each by itself.
Outcome combine_words(const Makers& makers, objects::Comm* comm, Combine how, uint64_t* words,
                      uint64_t count);

// All ranks get the same: `ok` if all have that, else the greatest of what they have. Stands where
// a rank without memory must not leave before the others have heard of it.
Outcome agree_on(const Makers& makers, objects::Comm* comm, Outcome own);

// Scatters a number over all bits (splitmix64).
inline uint64_t scattered(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

// Of a list of numbers, in their order.
class Fingerprint {
 public:
  void add(int number) { value_ = scattered(value_ ^ uint64_t(uint32_t(number))); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 1;
};

// Of an edge. They are added up, whatever the order of the edges.
inline uint64_t fingerprint_of(int from, int to) {
  return scattered(uint64_t(uint32_t(from)) << 32 | uint32_t(to));
}

}  // namespace headway::communicators
