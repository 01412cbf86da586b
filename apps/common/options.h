// What the user asked of one of the programs. Thread: main. Invariant: after a parser returned an
// empty string, every field is usable as it is.
#pragma once

#include <functional>
#include <string>

namespace apps {

// How the ranks of pes, nbody and m3 exchange their data. The results are the same, bit for bit.
enum class Form {
  messages,   // Send, Irecv, Wait: the early-release paper, section 3.2
  collective  // Scatter, Gather, Allgather: the prefetching paper, appendix
};

// What every program but pes is asked alike.
struct RunOptions {
  long iterations = 0;
  long warmup = 0;      // iterations before the measured ones
  long thin = 1;        // a thin-th part of the arithmetic is done; see each program
  double pace_mhz = 0;  // 0: full speed
  bool check = false;
  bool help = false;
};

// nbody and m3.
struct Options : RunOptions {
  long size = 0;
  long make = 150;  // cycles of the paced node for one number of m3's random matrices
  Form form = Form::messages;
};

struct Case {
  long size, iterations;
};

// What differs between nbody and m3.
struct Program {
  const char* what;  // what `size` counts
  bool makes;        // it has --make
  long least, most;  // of size
  Case standard;     // when nothing is asked for
  Case paper[3];     // sizes A, B and C: table 1 of the early-release paper
};

// These return what is wrong with the arguments, or an empty string.
std::string parse_options(int argc, char** argv, const Program& program, Options& options);

// The words of a command line. `take` gets each `--name value` and answers in the same way; what
// it does not know itself it hands on to take_run_option.
using Take = std::function<std::string(const std::string& name, const char* value)>;
std::string parse_words(int argc, char** argv, RunOptions& options, const Take& take);
std::string take_run_option(const std::string& name, const char* value, RunOptions& options);

// A complaint: "--thin wants a number, not "x"".
std::string wants(const std::string& name, const std::string& what, const char* got);

// These say whether `text` is such a thing, and put it into `out`.
bool parse_long(const char* text, long least, long most, long& out);
bool parse_mhz(const char* text, double& out);
bool parse_form(const char* text, Form& out);
// A, B or C.
bool parse_case(const char* text, const Case (&paper)[3], Case& out);

const char* name_of(Form form);

}  // namespace apps
