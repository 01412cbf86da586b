#include "pes/options.h"

#include <cstdlib>

namespace pes {
namespace {

bool parse_long(const char* text, long least, long most, long& out) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < least || value > most) return false;
  out = value;
  return true;
}

bool parse_mhz(const char* text, double& out) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0) || value > 1e6) return false;
  out = value;
  return true;
}

// Takes one `--name value`; returns what is wrong, or an empty string.
std::string take(const std::string& name, const char* value, Options& o) {
  const std::string text = value;
  if (name == "--pace") {
    if (!parse_mhz(value, o.pace_mhz)) return "--pace wants a clock in MHz, not \"" + text + "\"";
  } else if (name == "--order") {
    if (text == "paper")
      o.order = Order::paper;
    else if (text == "overlap")
      o.order = Order::overlap;
    else
      return "--order is paper or overlap, not \"" + text + "\"";
  } else if (name == "--problem") {
    if (text == "corners")
      o.problem = Problem::corners;
    else if (text == "charges")
      o.problem = Problem::charges;
    else
      return "--problem is corners or charges, not \"" + text + "\"";
  } else if (name == "--out") {
    if (text.empty()) return "--out wants the name of a file";
    o.out = text;
  } else {
    return "unknown option " + name;
  }
  return "";
}

}  // namespace

const char* const usage =
    "usage: pes [N] [ITERATIONS] [options]\n"
    "Solves the 2-D Poisson equation on N x N points with Jacobi's method, rows split over ranks.\n"
    "  N               points a side (default 1024)\n"
    "  ITERATIONS      sweeps over the field (default 1000)\n"
    "  --order ORDER   paper: wait for the ghost rows, then update every row (default)\n"
    "                  overlap: update the inner rows first, wait then\n"
    "  --problem P     corners: driven by the boundary alone, as in the papers (default)\n"
    "                  charges: with round charges inside\n"
    "  --pace MHZ      take as long for the computation as a node of that clock (733: papers' "
    "vplus)\n"
    "  --out FILE      write the field: a header of 24 bytes, then rows of float64\n"
    "  --check         verify the result; rank 0 also repeats the whole run alone\n"
    "Prints one line of JSON at the end.\n";

const char* name_of(Order order) { return order == Order::paper ? "paper" : "overlap"; }

const char* name_of(Problem problem) { return problem == Problem::corners ? "corners" : "charges"; }

std::string parse_options(int argc, char** argv, int ranks, Options& o) {
  int plain = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--help" || arg == "-h") {
      o.help = true;
      return "";
    }
    if (arg == "--check") {
      o.check = true;
    } else if (arg.rfind("--", 0) == 0) {
      if (i + 1 == argc) return arg + " wants a value";
      if (std::string wrong = take(arg, argv[++i], o); !wrong.empty()) return wrong;
    } else if (plain == 0) {
      if (!parse_long(argv[i], 3, 1'000'000, o.n)) {
        return "N must be a number from 3 to 1000000, not \"" + arg + "\"";
      }
      ++plain;
    } else if (plain == 1) {
      if (!parse_long(argv[i], 1, 1'000'000'000, o.iterations)) {
        return "ITERATIONS must be a number above 0, not \"" + arg + "\"";
      }
      ++plain;
    } else {
      return "unexpected argument \"" + arg + "\"";
    }
  }
  if (o.n < ranks) {
    return "a field of " + std::to_string(o.n) + " rows cannot be split over " +
           std::to_string(ranks) + " ranks";
  }
  return "";
}

}  // namespace pes
