// What the two NAS benchmarks, ft and is, share: classes, options, random numbers and the line that
// they print. The problems are those of "The NAS Parallel Benchmarks" (RNR-94-007, NAS-95-020); the
// code is our own. Thread: main. Owns nothing.
#pragma once

#include <cstdint>
#include <string>

#include "common/iterations.h"
#include "common/options.h"
#include "common/pace.h"
#include "common/world.h"

namespace apps {

constexpr int kNasClasses = 5;

struct NasOptions : RunOptions {
  char letter = 'S';

  // Of the class: 0 to 4, in the order of their sizes.
  int index() const;
  long all_iterations() const { return warmup + iterations; }
};

// `iterations`: of each class, where nothing else is asked for. Returns what is wrong, or an empty
// string.
std::string parse_nas_options(int argc, char** argv, const long (&iterations)[kNasClasses],
                              NasOptions& options);

// The random numbers of NAS: x' = 5^13 x modulo 2^46, from 314159265 on.
class NasRandom {
 public:
  // Begins after the first `skipped` numbers: any rank can begin anywhere.
  explicit NasRandom(uint64_t skipped) : state_(kSeed) {
    uint64_t factor = kFactor;
    for (; skipped != 0; skipped >>= 1) {
      if (skipped & 1) state_ = product(state_, factor);
      factor = product(factor, factor);
    }
  }

  // 46 bits.
  uint64_t next_bits() {
    state_ = product(state_, kFactor);
    return state_;
  }
  // From 0 to 1.
  double next() { return static_cast<double>(next_bits()) * 0x1p-46; }

 private:
  static constexpr uint64_t kSeed = 314159265, kFactor = 1220703125;

  // What overflows 64 bits is above the 46 that count.
  static uint64_t product(uint64_t a, uint64_t b) { return (a * b) & ((uint64_t{1} << 46) - 1); }

  uint64_t state_;
};

// What a run has shown. Only rank 0's `own` and `wrong` count.
struct NasOutcome {
  uint64_t hash = 0;
  std::string own;    // further keys of the program, with a comma behind each
  std::string wrong;  // empty: nothing
};

// Prints the line of JSON. All ranks call it; returns the exit status.
int report(const char* program, const NasOptions& options, const Place& place,
           const Iterations& log, const Pace& pace, const NasOutcome& outcome);

}  // namespace apps
