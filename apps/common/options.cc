#include "common/options.h"

#include <cstdlib>

namespace apps {
namespace {

// Takes one `--name value`; returns what is wrong, or an empty string.
std::string take(const std::string& name, const char* value, const Program& program, Options& o) {
  if (name == "--size") {
    Case paper;
    if (parse_case(value, program.paper, paper)) {
      o.size = paper.size;
      if (o.iterations == 0) o.iterations = paper.iterations;
    } else if (!parse_long(value, program.least, program.most, o.size)) {
      return wants(name,
                   "A, B, C or a number of " + std::string(program.what) + " from " +
                       std::to_string(program.least) + " to " + std::to_string(program.most),
                   value);
    }
  } else if (name == "--form") {
    if (!parse_form(value, o.form)) return wants(name, "messages or collective", value);
  } else if (name == "--make" && program.makes) {
    if (!parse_long(value, 0, 1'000'000, o.make)) return wants(name, "a number of cycles", value);
  } else {
    return take_run_option(name, value, o);
  }
  return "";
}

}  // namespace

std::string wants(const std::string& name, const std::string& what, const char* got) {
  return name + " wants " + what + ", not \"" + got + "\"";
}

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

bool parse_form(const char* text, Form& out) {
  for (const Form form : {Form::messages, Form::collective}) {
    if (std::string(text) != name_of(form)) continue;
    out = form;
    return true;
  }
  return false;
}

bool parse_case(const char* text, const Case (&paper)[3], Case& out) {
  if (text[0] < 'A' || text[0] > 'C' || text[1] != '\0') return false;
  out = paper[text[0] - 'A'];
  return true;
}

const char* name_of(Form form) { return form == Form::messages ? "messages" : "collective"; }

std::string take_run_option(const std::string& name, const char* value, RunOptions& o) {
  if (name == "--iterations") {
    if (!parse_long(value, 1, 1'000'000'000, o.iterations)) {
      return wants(name, "a number above 0", value);
    }
  } else if (name == "--warmup") {
    if (!parse_long(value, 0, 1'000'000, o.warmup)) return wants(name, "a number", value);
  } else if (name == "--thin") {
    if (!parse_long(value, 1, 64, o.thin)) return wants(name, "a number from 1 to 64", value);
  } else if (name == "--pace") {
    if (!parse_mhz(value, o.pace_mhz)) return wants(name, "a clock in MHz", value);
  } else {
    return "unknown option " + name;
  }
  return "";
}

std::string parse_words(int argc, char** argv, RunOptions& o, const Take& take) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--help" || arg == "-h") {
      o.help = true;
      return "";
    }
    if (arg == "--check") {
      o.check = true;
    } else if (arg.rfind("--", 0) != 0) {
      return "unexpected argument \"" + arg + "\"";
    } else if (i + 1 == argc) {
      return arg + " wants a value";
    } else if (std::string wrong = take(arg, argv[++i]); !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

std::string parse_options(int argc, char** argv, const Program& program, Options& o) {
  const auto take_one = [&](const std::string& name, const char* value) {
    return take(name, value, program, o);
  };
  std::string wrong = parse_words(argc, argv, o, take_one);
  if (o.size == 0) o.size = program.standard.size;
  if (o.iterations == 0) o.iterations = program.standard.iterations;
  return wrong;
}

}  // namespace apps
