#include "pes/options.h"

namespace pes {
namespace {

constexpr apps::Case kPaper[3] = {{5120, 2000}, {10240, 1000}, {20480, 500}};

// Takes one `--name value`; returns what is wrong, or an empty string.
std::string take(const std::string& name, const char* value, Options& o) {
  const std::string text = value;
  if (name == "--size") {
    apps::Case paper;
    if (apps::parse_case(value, kPaper, paper)) {
      o.n = paper.size;
      o.iterations = paper.iterations;
    } else if (!apps::parse_long(value, 3, 1'000'000, o.n)) {
      return "--size wants A, B, C or a number from 3 to 1000000, not \"" + text + "\"";
    }
  } else if (name == "--iterations") {
    if (!apps::parse_long(value, 1, 1'000'000'000, o.iterations)) {
      return "--iterations wants a number above 0, not \"" + text + "\"";
    }
  } else if (name == "--warmup") {
    if (!apps::parse_long(value, 0, 1'000'000, o.warmup)) {
      return "--warmup wants a number, not \"" + text + "\"";
    }
  } else if (name == "--rows") {
    if (!apps::parse_long(value, 3, 1'000'000, o.rows)) {
      return "--rows wants a number from 3 to 1000000, not \"" + text + "\"";
    }
  } else if (name == "--alone") {
    if (!apps::parse_long(value, 0, 1'000'000, o.alone)) {
      return "--alone wants a number, not \"" + text + "\"";
    }
  } else if (name == "--pace") {
    if (!apps::parse_mhz(value, o.pace_mhz))
      return "--pace wants a clock in MHz, not \"" + text + "\"";
  } else if (name == "--order") {
    if (text == "paper")
      o.order = Order::paper;
    else if (text == "overlap")
      o.order = Order::overlap;
    else
      return "--order is paper or overlap, not \"" + text + "\"";
  } else if (name == "--form") {
    if (!apps::parse_form(value, o.form)) return apps::wants(name, "messages or collective", value);
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
    "  --size N        the same as N; or A, B, C: 5120, 10240, 20480 of the papers, with their\n"
    "                  iterations\n"
    "  --iterations N  the same as ITERATIONS\n"
    "  --warmup N      iterations before the measured ones, reported apart (default 0)\n"
    "  --rows N        this many rows of N points: the same messages with less work "
    "(corners only)\n"
    "  --order ORDER   paper: wait for the ghost rows, then update every row (default)\n"
    "                  overlap: update the inner rows first, wait then\n"
    "  --form FORM     accepted for likeness: messages or collective; both papers have the same\n"
    "                  pseudo-code, Irecv, Irecv, Send, Send, Wait, Wait, then all rows\n"
    "  --problem P     corners: driven by the boundary alone, as in the papers (default)\n"
    "                  charges: with round charges inside\n"
    "  --pace MHZ      take as long for the computation as a node of that clock (733: papers' "
    "vplus)\n"
    "  --alone N       exchanges without computation, timed before the run (default 144); with 0 "
    "the share hidden is null\n"
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
      if (!apps::parse_long(argv[i], 3, 1'000'000, o.n)) {
        return "N must be a number from 3 to 1000000, not \"" + arg + "\"";
      }
      ++plain;
    } else if (plain == 1) {
      if (!apps::parse_long(argv[i], 1, 1'000'000'000, o.iterations)) {
        return "ITERATIONS must be a number above 0, not \"" + arg + "\"";
      }
      ++plain;
    } else {
      return "unexpected argument \"" + arg + "\"";
    }
  }
  if (o.rows == 0) o.rows = o.n;
  if (o.rows != o.n && o.problem == Problem::charges) {
    return "--rows goes with --problem corners only";
  }
  if (o.rows < ranks) {
    return "a field of " + std::to_string(o.rows) + " rows cannot be split over " +
           std::to_string(ranks) + " ranks";
  }
  return "";
}

}  // namespace pes
