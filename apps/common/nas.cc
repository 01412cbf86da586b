#include "common/nas.h"

#include <cstdio>
#include <cstring>

namespace apps {
namespace {

constexpr const char* kLetters = "SWABC";

}  // namespace

int NasOptions::index() const { return static_cast<int>(std::strchr(kLetters, letter) - kLetters); }

std::string parse_nas_options(int argc, char** argv, const long (&iterations)[kNasClasses],
                              NasOptions& o) {
  const auto take = [&o](const std::string& name, const char* value) -> std::string {
    if (name != "--class") return take_run_option(name, value, o);
    if (std::strlen(value) != 1 || std::strchr(kLetters, value[0]) == nullptr) {
      return wants(name, "S, W, A, B or C", value);
    }
    o.letter = value[0];
    return "";
  };
  std::string wrong = parse_words(argc, argv, o, take);
  if (wrong.empty() && (o.thin & (o.thin - 1)) != 0) wrong = "--thin wants a power of two here";
  if (o.iterations == 0) o.iterations = iterations[o.index()];
  return wrong;
}

int report(const char* program, const NasOptions& options, const Place& place,
           const Iterations& log, const Pace& pace, const NasOutcome& outcome) {
  const Summary summary = log.summary(true);
  const double mine[2] = {pace.late_seconds(), pace.blocked_seconds()};
  double waits[2] = {0, 0};
  MPI_Reduce(mine, waits, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (place.rank != 0) return 0;
  std::printf(
      "{\"program\": \"%s\", \"ranks\": %d, \"class\": \"%c\", \"iterations\": %ld, \"warmup\": "
      "%ld, \"thin\": %ld, \"pace_mhz\": %g, \"late\": %.6f, \"blocked\": %.6f, %s, %s"
      "\"checksum\": \"%016llx\", \"check\": \"%s\"}\n",
      program, place.ranks, options.letter, options.iterations, options.warmup, options.thin,
      options.pace_mhz, waits[0] / place.ranks, waits[1] / place.ranks, summary.json().c_str(),
      outcome.own.c_str(), static_cast<unsigned long long>(outcome.hash),
      outcome.wrong.empty() ? "ok" : outcome.wrong.c_str());
  std::fflush(stdout);
  return outcome.wrong.empty() ? 0 : 1;
}

}  // namespace apps
