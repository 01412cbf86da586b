// What the user asked of one of the papers' programs. Thread: main. Invariant: after parse_options
// returned an empty string, every field is usable as it is.
#pragma once

#include <string>

namespace apps {

struct Options {
  long size = 0;
  long iterations = 0;
  long warmup = 0;      // iterations before the measured ones
  long thin = 1;        // a thin-th part of the arithmetic is done; see each program
  long make = 150;      // cycles of the paced node for one number of m3's random matrices
  double pace_mhz = 0;  // 0: full speed
  bool check = false;
  bool help = false;
};

struct Case {
  long size, iterations;
};

// What differs between the programs.
struct Program {
  const char* what;  // what `size` counts
  bool makes;        // it has --make
  long least, most;  // of size
  Case standard;     // when nothing is asked for
  Case paper[3];     // sizes A, B and C: table 1 of the early-release paper
};

// Returns what is wrong with the arguments, or an empty string.
std::string parse_options(int argc, char** argv, const Program& program, Options& options);

// These say whether `text` is such a number, and put it into `out`.
bool parse_long(const char* text, long least, long most, long& out);
bool parse_mhz(const char* text, double& out);
// A, B or C.
bool parse_case(const char* text, const Case (&paper)[3], Case& out);

}  // namespace apps
