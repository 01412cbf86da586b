// Counting: every rank has a stream of keys, as a program that counts pieces of a genome has them.
// It computes a while for each, and counts it in a table that is spread over all ranks. What a rank
// waits for another one is what the forms of the table differ in. Nothing here knows which MPI
// library it runs on.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <unordered_map>

#include "common/hash.h"
#include "common/options.h"
#include "common/world.h"
#include "table/table.h"

namespace table {
namespace {

const char* const kUsage =
    "usage: table [options]\n"
    "Counts keys in a table that is spread over the ranks, and computes for each.\n"
    "  --size N         keys, of all ranks together (default 20000)\n"
    "  --distinct N     different ones among them, about (default a quarter)\n"
    "  --work US        microseconds of computation for each key (default 20)\n"
    "  --form FORM      allocated: one-sided, in MPI's memory (default); created: one-sided, in "
    "the\n"
    "                   program's; messages: the owner of a key is asked, and answers between two\n"
    "                   pieces of its own work\n"
    "  --check          rank 0 also counts all keys alone\n"
    "Prints one line of JSON at the end.\n";

struct Options : apps::RunOptions {
  long size = 20'000, distinct = 0, work_us = 20;
  Form form = Form::allocated;
};

bool parse_table_form(const char* text, Form& form) {
  for (const Form one : {Form::allocated, Form::created, Form::messages}) {
    if (std::string(text) != name_of(one)) continue;
    form = one;
    return true;
  }
  return false;
}

std::string parse(int argc, char** argv, int, Options& o) {
  const auto take = [&](const std::string& name, const char* value) -> std::string {
    if (name == "--size") {
      if (!apps::parse_long(value, 1, 1'000'000'000, o.size)) {
        return apps::wants(name, "a number of keys from 1 to 10^9", value);
      }
    } else if (name == "--distinct") {
      if (!apps::parse_long(value, 1, 100'000'000, o.distinct)) {
        return apps::wants(name, "a number of keys from 1 to 10^8", value);
      }
    } else if (name == "--work") {
      if (!apps::parse_long(value, 0, 10'000'000, o.work_us)) {
        return apps::wants(name, "microseconds, at most 10^7", value);
      }
    } else if (name == "--form") {
      if (!parse_table_form(value, o.form)) {
        return apps::wants(name, "allocated, created or messages", value);
      }
    } else {
      return "unknown option " + name;
    }
    return "";
  };
  std::string wrong = apps::parse_words(argc, argv, o, take);
  if (o.distinct == 0) o.distinct = std::max(1L, o.size / 4);
  return wrong;
}

// The same keys for any number of ranks. Never 0.
uint64_t key_of(const Options& o, long index) {
  const uint64_t drawn = apps::mix(static_cast<uint64_t>(index) * 0x9e3779b97f4a7c15u + 1);
  return 1 + drawn % static_cast<uint64_t>(o.distinct);
}

void compute(double us) {
  const double end = MPI_Wtime() + 1e-6 * us;
  while (MPI_Wtime() < end) continue;
}

uint64_t hash_of(const Slot& slot) { return apps::mix(apps::mix(slot.key) ^ slot.times); }

// What one rank alone finds.
uint64_t count_alone(const Options& o) {
  std::unordered_map<uint64_t, uint64_t> counted;
  for (long i = 0; i < o.size; ++i) ++counted[key_of(o, i)];
  uint64_t sum = 0;
  for (const auto& [key, times] : counted) sum += hash_of({key, times});
  return sum;
}

struct Found {
  uint64_t times = 0, sum = 0;  // all ranks'
  bool is_full = false;
  double seconds = 0, wait = 0, longest = 0;  // us of a key of another rank: in the mean, at most
};

Found run(const Options& o, const apps::Place& place) {
  const auto ranks = static_cast<uint64_t>(place.ranks);
  const Layout layout{place.ranks, 2 * static_cast<uint64_t>(o.distinct) / ranks + 64};
  const std::unique_ptr<Table> counts = make_table(o.form, layout);
  const long first = o.size * place.rank / place.ranks;
  const long end = o.size * (place.rank + 1) / place.ranks;
  bool is_full = false;
  double waited[2] = {0, 0};  // seconds; how often
  double longest = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double started = MPI_Wtime();
  for (long i = first; i < end; ++i) {
    compute(static_cast<double>(o.work_us));
    counts->serve();
    const uint64_t key = key_of(o, i);
    const double asked = MPI_Wtime();
    is_full |= counts->count(key) == Table::full;
    const double wait = MPI_Wtime() - asked;
    if (layout.owner(key) == place.rank) continue;
    waited[0] += wait;
    ++waited[1];
    longest = std::max(longest, wait);
  }
  counts->finish();
  const double mine[2] = {MPI_Wtime() - started, longest};
  uint64_t here[2] = {0, 0}, all[2];
  for (uint64_t i = 0; i < layout.slots; ++i) {
    const Slot& slot = counts->slots()[i];
    if (slot.key == 0) continue;
    here[0] += slot.times;
    here[1] += hash_of(slot);
  }
  double most[2], waits[2];
  MPI_Allreduce(here, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(waited, waits, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return {all[0],
          all[1],
          apps::anywhere(is_full),
          most[0],
          waits[1] > 0 ? 1e6 * waits[0] / waits[1] : 0,
          1e6 * most[1]};
}

int work(const Options& o, const apps::Place& place) {
  const Found found = run(o, place);
  if (place.rank != 0) return 0;
  std::string wrong;
  if (found.is_full) wrong = "a rank's slots are full";
  if (found.times != static_cast<uint64_t>(o.size)) wrong = "keys were lost, or counted twice";
  if (o.check && wrong.empty() && count_alone(o) != found.sum) {
    wrong = "the table differs from that of one rank";
  }
  std::printf(
      "{\"program\": \"table\", \"ranks\": %d, \"size\": %ld, \"distinct\": %ld, \"work_us\": %ld, "
      "\"form\": \"%s\", \"seconds\": %.6f, \"wait_us\": %.3f, \"longest_us\": %.1f, "
      "\"checksum\": \"%016llx\", \"check\": \"%s\"}\n",
      place.ranks, o.size, o.distinct, o.work_us, name_of(o.form), found.seconds, found.wait,
      found.longest, static_cast<unsigned long long>(found.sum),
      wrong.empty() ? "ok" : wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace table

int main(int argc, char** argv) {
  return apps::run_main(argc, argv, "table", table::kUsage, table::parse, table::work);
}
