// IS of the NAS benchmarks: the ranks of many whole numbers in sorted order, our own code. Each
// rank begins with as many keys. In each iteration it counts how many of them fall into each
// bucket, a range of keys, and writes them into a send buffer, bucket by bucket. MPI_Allreduce adds
// up the sizes of the buckets, which are then dealt out so that all ranks get about as many keys;
// MPI_Alltoall tells how many keys come from whom, MPI_Alltoallv brings them. A key's rank is the
// number of smaller ones: all keys of the ranks before, and those counted here.
//
// The send buffer of MPI_Alltoallv is what the buckets are written into, once in an iteration; so
// its pages become final while keys are still moved. They do so bucket by bucket side by side, as
// keys come in random order: each bucket from its first page to its last. The keys received are
// counted in the order of their places, the rank's own first, then the next rank's and so on.
// Nothing here knows which MPI library it runs on.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "common/hash.h"
#include "common/iterations.h"
#include "common/nas.h"
#include "common/pace.h"
#include "common/world.h"
#include "is/keys.h"
#include "is/problem.h"

namespace is {
namespace {

// Cycles for one key on the papers' 733 MHz nodes: class C takes 8 of them 8.2 s of computation
// (runtime of table 2 of the prefetching paper less the time on the wire), 358 cycles. How they are
// shared out is an assumption: counting buckets stays in the first cache, keys written to a
// thousand buckets and keys counted one by one do not.
constexpr long kCyclesCount = 28, kCyclesMove = 150, kCyclesRank = 180;

constexpr long kPiece = 1024;  // keys between two looks at the pace: a page of them

constexpr long kIterations[apps::kNasClasses] = {10, 10, 10, 10, 10};

const char* const kUsage =
    "usage: is [options]\n"
    "IS of the NAS benchmarks: ranks whole numbers in sorted order; numbers split over ranks.\n"
    "  --class C        S, W, A, B or C: 2^16, 2^20, 2^23, 2^25, 2^27 keys, below 2^11, 2^16, "
    "2^19,\n"
    "                   2^21, 2^23 (default S)\n"
    "  --iterations N   measured rankings (default 10)\n"
    "  --warmup N       rankings before them, reported apart (default 0)\n"
    "  --thin N         runs of N equal keys, looked at once each: less arithmetic, same messages; "
    "a power\n"
    "                   of two (1)\n"
    "  --pace MHZ       take as long for the computation as a node of that clock (733: papers' "
    "vplus)\n"
    "  --check          rank 0 also repeats the whole run alone\n"
    "Prints one line of JSON at the end.\n";

// How many numbers go to, or come from, each rank, and where each rank's begin.
struct Shares {
  std::vector<int> counts, starts;

  explicit Shares(int ranks)
      : counts(static_cast<size_t>(ranks)), starts(static_cast<size_t>(ranks)) {}
  void set_starts() { std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0); }
  long sum() const { return std::accumulate(counts.begin(), counts.end(), 0L); }
};

// What all ranks together found wrong, at the end.
struct Findings {
  long tests = 0, wrong_tests = 0;  // of the ranks that NAS publishes
  long strangers = 0;               // keys that should not be where they are
  long unsorted = 0;                // keys smaller than the one before
  long keys = 0;
};

class Sorter {
 public:
  Sorter(MPI_Comm comm, const apps::NasOptions& options);

  bool ok() const { return keys_.ok(); }
  void iterate(apps::Iterations& log);

  // Sorts by the ranks of the last iteration and looks at the whole.
  Findings findings();
  // The same keys were sent and received.
  bool conserved();
  uint64_t hash() { return apps::sum_of_hashes(hash_, comm_); }
  const apps::Pace& pace() const { return pace_; }

 private:
  void fill_buckets();
  void add_up_buckets();
  void deal_out_buckets();
  void exchange();
  void rank_keys();
  void test();
  long unsorted(const std::vector<int>& sorted) const;

  MPI_Comm comm_;
  apps::Place place_;
  const Problem& problem_;
  const long thin_;
  Keys keys_;
  Ranking ranking_;
  apps::Pace pace_;
  long iteration_ = 0;
  std::vector<int> totals_;        // keys of all ranks in each bucket; then the keys to test
  std::vector<int> first_bucket_;  // of each rank, and one more
  Shares to_, from_;
  long tests_ = 0, wrong_tests_ = 0;
  uint64_t hash_ = 0;
};

Sorter::Sorter(MPI_Comm comm, const apps::NasOptions& options)
    : comm_(comm),
      place_(apps::place_in(comm)),
      problem_(kProblems[options.index()]),
      thin_(options.thin),
      keys_(problem_, thin_, part_of(problem_.keys() / thin_, place_.rank, place_.ranks)),
      ranking_(thin_),
      pace_(options.pace_mhz, 1, apps::kCoarse * place_.ranks),
      totals_(static_cast<size_t>(problem_.buckets() + kTests)),
      first_bucket_(static_cast<size_t>(place_.ranks + 1)),
      to_(place_.ranks),
      from_(place_.ranks) {}

void Sorter::fill_buckets() {
  const long runs = keys_.runs(), piece = kPiece / thin_;
  pace_.start();
  keys_.start_counting();
  for (long i = 0; i < runs; i += piece) {
    const long count = std::min(piece, runs - i);
    keys_.count(i, count);
    pace_.done(count * thin_ * kCyclesCount);
  }
  keys_.start_moving();
  for (long i = 0; i < runs; i += piece) {
    const long count = std::min(piece, runs - i);
    keys_.move(i, count);
    pace_.done(count * thin_ * kCyclesMove);
  }
  pace_.finish();
}

// The keys whose ranks are published travel along, each from the one rank that has it.
void Sorter::add_up_buckets() {
  std::vector<int> mine = keys_.bucket_sizes();
  for (const Test& test : problem_.tests) mine.push_back(keys_.key_at(test.place));
  MPI_Allreduce(mine.data(), totals_.data(), static_cast<int>(mine.size()), MPI_INT, MPI_SUM,
                comm_);
}

// Rank r gets the buckets that begin in the r-th part of all keys.
void Sorter::deal_out_buckets() {
  const int buckets = static_cast<int>(problem_.buckets());
  const std::vector<int>& sizes = keys_.bucket_sizes();
  std::fill(to_.counts.begin(), to_.counts.end(), 0);
  long before = 0;
  int owner = -1;
  for (int i = 0; i < buckets; ++i) {
    const long part = std::min<long>(before * place_.ranks / problem_.keys(), place_.ranks - 1);
    while (owner < part) first_bucket_[static_cast<size_t>(++owner)] = i;
    to_.counts[static_cast<size_t>(owner)] += sizes[static_cast<size_t>(i)];
    before += totals_[static_cast<size_t>(i)];
  }
  while (owner < place_.ranks) first_bucket_[static_cast<size_t>(++owner)] = buckets;
  to_.set_starts();
}

void Sorter::exchange() {
  MPI_Alltoall(to_.counts.data(), 1, MPI_INT, from_.counts.data(), 1, MPI_INT, comm_);
  from_.set_starts();
  const int* const buckets = first_bucket_.data() + place_.rank;
  const int width = static_cast<int>(problem_.bucket_width());
  const long below = std::accumulate(totals_.data(), totals_.data() + buckets[0], 0L);
  if (!ranking_.start(buckets[0] * width, buckets[1] * width, below, from_.sum())) {
    std::fprintf(stderr, "is: no memory for the keys of rank %d\n", place_.rank);
    MPI_Abort(comm_, 2);
  }
  MPI_Alltoallv(keys_.sent(), to_.counts.data(), to_.starts.data(), MPI_INT, ranking_.received(),
                from_.counts.data(), from_.starts.data(), MPI_INT, comm_);
}

void Sorter::rank_keys() {
  pace_.start();
  for (int distance = 0; distance < place_.ranks; ++distance) {
    const size_t source = static_cast<size_t>((place_.rank + distance) % place_.ranks);
    const long first = from_.starts[source], end = first + from_.counts[source];
    for (long i = first; i < end; i += kPiece) {
      const long count = std::min(kPiece, end - i);
      ranking_.count(i, count);
      pace_.done(count * kCyclesRank);
    }
  }
  ranking_.finish();
  pace_.finish();
}

void Sorter::test() {
  for (int i = 0; i < kTests; ++i) {
    const int key = totals_[static_cast<size_t>(problem_.buckets() + i)];
    if (!ranking_.has(key)) continue;
    const long rank = ranking_.rank_of(key);
    const uint64_t mark = static_cast<uint64_t>(iteration_ * kTests + i);
    hash_ += apps::mix(apps::mix(mark + 1) ^ static_cast<uint64_t>(rank));
    ++tests_;
    if (rank != problem_.tests[i].rank_after(iteration_)) ++wrong_tests_;
  }
}

void Sorter::iterate(apps::Iterations& log) {
  keys_.change(++iteration_);
  fill_buckets();
  log.enter();
  add_up_buckets();
  log.leave();
  deal_out_buckets();
  log.enter();
  exchange();
  log.leave();
  rank_keys();
  test();
  log.done();
}

long Sorter::unsorted(const std::vector<int>& sorted) const {
  const int largest = sorted.empty() ? -1 : *std::max_element(sorted.begin(), sorted.end());
  int before = -1;
  MPI_Exscan(&largest, &before, 1, MPI_INT, MPI_MAX, comm_);
  if (place_.rank == 0) before = -1;  // nobody is before it, and nothing was written
  long count = 0;
  for (const int key : sorted) {
    if (key < before) ++count;
    before = key;
  }
  return count;
}

Findings Sorter::findings() {
  const long strangers = ranking_.strangers();
  const std::vector<int> sorted = strangers == 0 ? ranking_.sorted() : std::vector<int>();
  hash_ += ranking_.hash_of(sorted);
  const long mine[5] = {tests_, wrong_tests_, strangers, unsorted(sorted),
                        static_cast<long>(sorted.size())};
  long all[5] = {0, 0, 0, 0, 0};
  MPI_Allreduce(mine, all, 5, MPI_LONG, MPI_SUM, comm_);
  return {all[0], all[1], all[2], all[3], all[4]};
}

bool Sorter::conserved() {
  const uint64_t sent = apps::sum_of_hashes(keys_.hash(), comm_);
  return sent == apps::sum_of_hashes(ranking_.hash(), comm_);
}

// The same rankings on one rank must give the same.
std::string repeat_alone(apps::NasOptions options, uint64_t hash) {
  options.pace_mhz = 0;
  Sorter alone(MPI_COMM_SELF, options);
  if (!alone.ok()) return "no memory to repeat the run on one rank";
  apps::Iterations log(0);
  for (long i = 0; i < options.all_iterations(); ++i) alone.iterate(log);
  alone.findings();
  return alone.hash() == hash ? "" : "the ranks differ from a run on one rank";
}

std::string complaint(const Findings& f, const apps::NasOptions& options) {
  const bool published = options.thin == 1;  // thinned, it is another problem
  if (f.strangers > 0) return std::to_string(f.strangers) + " keys are on the wrong rank";
  if (f.tests != kTests * options.all_iterations()) return "a key to test was nowhere, or twice";
  if (published && f.wrong_tests > 0) {
    return std::to_string(f.wrong_tests) + " ranks are not those that NAS publishes";
  }
  if (f.unsorted > 0) return std::to_string(f.unsorted) + " keys are out of order";
  if (f.keys != kProblems[options.index()].keys()) return "some keys are missing";
  return "";
}

int work(const apps::NasOptions& options, const apps::Place& place) {
  Sorter sorter(MPI_COMM_WORLD, options);
  if (apps::anywhere(!sorter.ok())) {
    if (place.rank == 0) std::fprintf(stderr, "is: no memory for class %c\n", options.letter);
    return 2;
  }
  apps::Iterations log(options.warmup);
  MPI_Barrier(MPI_COMM_WORLD);
  log.start();
  for (long i = 0; i < options.all_iterations(); ++i) sorter.iterate(log);

  const Findings findings = sorter.findings();
  apps::NasOutcome outcome;
  outcome.hash = sorter.hash();
  outcome.wrong = complaint(findings, options);
  if (!sorter.conserved() && outcome.wrong.empty()) outcome.wrong = "the keys have changed";
  if (place.rank == 0 && options.check && outcome.wrong.empty()) {
    outcome.wrong = repeat_alone(options, outcome.hash);
  }
  const long compared = options.thin == 1 ? findings.tests : 0;
  outcome.own = "\"nas_compared\": " + std::to_string(compared) + ", ";
  return apps::report("is", options, place, log, sorter.pace(), outcome);
}

// More ranks than buckets would leave some without work; and rank 0 has all keys that are changed.
std::string parse(int argc, char** argv, int ranks, apps::NasOptions& options) {
  std::string wrong = apps::parse_nas_options(argc, argv, kIterations, options);
  const Problem& problem = kProblems[options.index()];
  const long most = std::min(problem.buckets(), problem.keys() / options.thin / (2 * kChanges + 1));
  if (wrong.empty() && !options.help && ranks > most) {
    wrong = std::string("class ") + options.letter + " cannot be split over " +
            std::to_string(ranks) + " ranks: " + std::to_string(most) + " at most";
  }
  return wrong;
}

}  // namespace
}  // namespace is

int main(int argc, char** argv) {
  return apps::run_main<apps::NasOptions>(argc, argv, "is", is::kUsage, is::parse, is::work);
}
