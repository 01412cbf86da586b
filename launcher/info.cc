#include "info.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "binding.h"
#include "engine.h"
#include "guard/system.h"
#include "hosts.h"
#include "program.h"
#include "settings/options.h"

#ifndef HEADWAY_VERSION
#define HEADWAY_VERSION "0"
#endif

namespace headway::launcher {
namespace {

// What the ranks of a job started here would get: --set, else the environment, else the default.
std::string value_of(const Plan& plan, const settings::OptionInfo& row, std::string& origin) {
  const std::string variable = std::string("HEADWAY_") + row.name;
  std::string value = row.default_text;
  origin = "default";
  if (const char* text = getenv(variable.c_str()); text && *text) {
    value = text;
    settings::Settings scratch;
    origin = settings::parse_option(row, text, scratch) ? "environment" : "environment, NOT VALID";
  }
  for (const Assignment& setting : plan.environment) {
    if (setting.first != variable) continue;
    value = setting.second;
    origin = "--set";
  }
  return value.empty() ? "(empty)" : value;
}

// Prints `text` behind an indentation, in lines that fit.
void print_wrapped(const std::string& text, size_t indentation, size_t width) {
  size_t at = 0;
  while (at < text.size()) {
    size_t end = std::min(text.size(), at + width - indentation);
    if (end < text.size()) {
      const size_t blank = text.rfind(' ', end);
      if (blank != std::string::npos && blank > at) end = blank;
    }
    printf("%*s%s\n", static_cast<int>(indentation), "", text.substr(at, end - at).c_str());
    at = end + (end < text.size());
  }
}

// How this machine lets early release close pages, tried in this process, as a rank would.
void print_guards(const Plan& plan) {
  using guard::Kind;
  const settings::OptionInfo* row = settings::find_option("GUARD");
  std::string origin;
  settings::Settings wished;
  if (!settings::parse_option(*row, value_of(plan, *row, origin).c_str(), wished)) wished = {};
  const guard::System system = guard::look_at_system();
  printf("\nclosing pages (early release)\n");
  for (const Kind kind : {Kind::missing, Kind::minor, Kind::trap}) {
    const guard::Ability& ability = system.of(kind);
    const bool works = ability.outcome == Outcome::ok;
    const char* mode = !works ? "no" : ability.sees_kernel ? "full mode" : "user mode";
    const char* asked = works && kind != Kind::missing ? ", for those who ask" : "";
    printf("  %-16s %s%s\n", guard::name_of(kind), mode, asked);
    if (!works) print_wrapped(ability.why, 6, 90);
  }
  const char* why = "";
  const Kind chosen = guard::choose(system, guard::Wish(wished.guard), why);
  printf("  %-16s %s\n", "chosen", guard::name_of(chosen));
  // Why what was asked for does not work has been said above.
  const auto wish = guard::Wish(wished.guard);
  const bool asked = wish != guard::Wish::automatic && wish != guard::Wish::none;
  if (*why && (chosen != Kind::none || !asked)) {
    print_wrapped(why, 6, 90);
  }
}

// What would start ranks on other machines from here.
void print_engine() {
  Place place;
  find_place({}, {}, place);  // a job that cannot start says so when it is started
  const Engine engine = choose_engine(place);
  if (engine.explanation.empty()) {
    printf("other machines %s, %s\n", name_of(engine.kind), engine.path.c_str());
  } else {
    printf("other machines nothing here starts ranks there (docs/launcher.md)\n");
  }
}

}  // namespace

void print_version() { printf("mpiexec (Headway MPI) %s\n", HEADWAY_VERSION); }

void print_info(const Plan& plan) {
  print_version();
  const std::string folder = library_folder();
  printf("MPI standard   5.0, ABI 1.0\n");
  if (folder.empty()) {
    printf("library        none found beside this mpiexec\n");
  } else {
    printf("library        %s/libmpi_abi.so.1\n", folder.c_str());
  }
  print_engine();
  const Binding binding = plan_binding(plan.bind, std::max(1, plan.ranks()), true);
  printf("\ncores\n");
  std::string picture = binding.picture;
  for (size_t at = 0; at < picture.size();) {
    const size_t end = picture.find('\n', at);
    printf("  %s\n", picture.substr(at, end - at).c_str());
    at = end == std::string::npos ? picture.size() : end + 1;
  }
  print_guards(plan);
  printf("\noptions of the library: mpiexec --set NAME=VALUE, or the variable HEADWAY_NAME\n");
  for (const settings::OptionInfo& row : settings::option_table) {
    std::string origin;
    const std::string value = value_of(plan, row, origin);
    printf("  %-16s %s", row.name, value.c_str());
    if (origin != "default") {
      printf("  (%s; default %s)", origin.c_str(), *row.default_text ? row.default_text : "empty");
    }
    if (*row.choices) printf("  one of %s", row.choices);
    printf("\n");
    print_wrapped(row.help, 6, 90);
  }
}

}  // namespace headway::launcher
