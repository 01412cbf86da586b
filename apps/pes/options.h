// What the user asked of pes. Thread: main. Owns its strings. Invariant: after parse_options
// returns an empty string, every field is usable as it is.
#pragma once

#include <string>

#include "common/options.h"

namespace pes {

enum class Order {
  paper,   // wait for both ghost rows, then update all rows: the papers' pseudo-code
  overlap  // update the inner rows while the ghost rows travel, then wait, then the edges
};

enum class Problem {
  corners,  // Laplace: only the boundary drives the field, which starts at zero
  charges   // Poisson: round charges inside, starting from the solution of `corners`
};

struct Options {
  long n = 1024;
  long rows = 0;  // parse_options makes it n where nothing else is asked
  long iterations = 1000;
  long warmup = 0;  // iterations before the measured ones
  Order order = Order::paper;
  apps::Form form = apps::Form::messages;  // for likeness: both papers have the same messages
  Problem problem = Problem::corners;
  long alone = 9 * 16;  // exchanges without computation that are timed before the run
  double pace_mhz = 0;  // 0: full speed
  std::string out;      // empty: the field is not written
  bool check = false;
  bool help = false;
};

extern const char* const usage;

// Returns what is wrong with the arguments, or an empty string.
std::string parse_options(int argc, char** argv, int ranks, Options& options);

const char* name_of(Order order);
const char* name_of(Problem problem);

}  // namespace pes
