// M3: matrix times matrix, the third application of the early-release paper (section 3.2), written
// as an ordinary MPI user would. In each iteration a master makes a random matrix A (as if it
// collected data), sends each slave some rows of it, and gathers their rows of C = A * B. B,
// transposed, is broadcast once. A slave receives its rows, multiplies row by row, and sends the
// result. The master looks at the last results while the slaves work on the next ones. The other
// form is that of the prefetching paper's appendix: Scatter, the master makes the next matrix while
// the slaves compute, Gather, the master looks at the results. Nothing here knows which MPI library
// it runs on.
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

#include "common/array.h"
#include "common/hash.h"
#include "common/iterations.h"
#include "common/options.h"
#include "common/pace.h"
#include "common/world.h"
#include "m3/matrix.h"

namespace m3 {
namespace {

// Cycles for one product and its addition on the papers' 733 MHz nodes: 1024 x 1024 numbers take
// their 7 slaves 2.51 s (runtime of table 2 of the prefetching paper less the time on the wire).
constexpr double kCyclesPerProduct = 12;

constexpr int kTagA = 1, kTagC = 2;

constexpr apps::Program kProgram = {
    "rows and columns", true, 1, 30'000, {256, 10}, {{1024, 400}, {2048, 40}, {4096, 20}}};

const char* const kUsage =
    "usage: m3 [options]\n"
    "Multiplies one random matrix after the other with the same matrix; a master, the others "
    "slaves.\n"
    "  --size N         rows and columns, or A, B, C: 1024, 2048, 4096 of the papers (default "
    "256)\n"
    "  --iterations N   measured matrices (default 10; the papers' for A, B, C)\n"
    "  --warmup N       matrices before them, reported apart (default 0)\n"
    "  --thin N         only every N-th row of B is other than zero: less arithmetic, same "
    "messages "
    "(1)\n"
    "  --form FORM      messages: Send, Irecv, Waitall (default); collective: Scatter, Gather\n"
    "  --pace MHZ       take as long for the computation as a node of that clock (733: papers' "
    "vplus)\n"
    "  --make CYCLES    of that node, for one random number of the master (default 150: two calls "
    "of\n"
    "                   rand(), a division, a cache line that is not there)\n"
    "  --check          accepted for likeness: every row of every result is checked anyway\n"
    "Prints one line of JSON at the end.\n";

using Numbers = apps::Array<double>;

Numbers numbers(long count) { return apps::make_array<double>(count); }

struct Job {
  apps::Options options;
  int rank, ranks;

  bool collective() const {
    return options.form == apps::Form::collective && slaves() > 0;  // else there is nobody to ask
  }
  long n() const { return options.size; }
  long iterations() const { return options.warmup + options.iterations; }
  int slaves() const { return ranks - 1; }
  // Rows of the slave with this rank.
  Slice slice(int slave) const { return slice_of(n(), slave - 1, slaves()); }
  int count(int slave) const { return static_cast<int>(slice(slave).rows * n()); }
};

// Scatter and Gather of rows between the master's matrix and the slaves' parts of it. If all slaves
// have as many rows, these are the plain calls, which deal out a part to the master as well: its
// matrices begin with a part in which nothing is, and which stays where it is.
class Rows {
 public:
  explicit Rows(const Job& job);

  // Numbers before the first row of the master's matrices.
  long front() const { return even_ ? counts_[0] : 0; }

  // `all`: the master's array; `part`: a slave's. The other one is not looked at.
  void scatter(const double* all, double* part) const;
  void gather(const double* part, double* all) const;

 private:
  int own() const { return counts_[static_cast<size_t>(rank_)]; }

  const int rank_;
  const bool even_;
  std::vector<int> counts_, starts_;  // of each rank, in numbers
};

Rows::Rows(const Job& job)
    : rank_(job.rank),
      even_(job.collective() && job.n() % job.slaves() == 0),
      counts_{even_ ? job.count(1) : 0},
      starts_{0} {
  for (int slave = 1; slave < job.ranks; ++slave) {
    starts_.push_back(starts_.back() + counts_.back());
    counts_.push_back(job.count(slave));
  }
}

void Rows::scatter(const double* all, double* part) const {
  void* const into = rank_ == 0 ? MPI_IN_PLACE : part;
  if (even_) {
    MPI_Scatter(all, own(), MPI_DOUBLE, into, own(), MPI_DOUBLE, 0, MPI_COMM_WORLD);
  } else {
    MPI_Scatterv(all, counts_.data(), starts_.data(), MPI_DOUBLE, into, own(), MPI_DOUBLE, 0,
                 MPI_COMM_WORLD);
  }
}

void Rows::gather(const double* part, double* all) const {
  const void* const from = rank_ == 0 ? MPI_IN_PLACE : part;
  if (even_) {
    MPI_Gather(from, own(), MPI_DOUBLE, all, own(), MPI_DOUBLE, 0, MPI_COMM_WORLD);
  } else {
    MPI_Gatherv(from, own(), MPI_DOUBLE, all, counts_.data(), starts_.data(), MPI_DOUBLE, 0,
                MPI_COMM_WORLD);
  }
}

// What a rank knows at the end.
struct Outcome {
  double late = 0, blocked = 0;
  uint64_t hash = 0;    // master
  long wrong_rows = 0;  // master
  bool no_memory = false;
};

class Master {
 public:
  explicit Master(const Job& job);

  bool ok() const { return a_ && b_ && c_; }
  double* b() { return b_.get(); }
  void prepare();
  void run(apps::Iterations& log);
  Outcome outcome() const { return outcome_; }

 private:
  double* a() { return a_.get() + rows_.front(); }
  double* c() { return c_.get() + rows_.front(); }
  void iterate(long iteration, apps::Iterations& log);
  void iterate_collectively(long iteration, apps::Iterations& log);
  void make_matrix(long iteration);
  void look_at_results();
  void compute_alone();

  const Job& job_;
  const Rows rows_;
  Numbers a_, b_, c_;
  std::vector<double> w_;
  // Of each row: what C must add up to, for the matrix in a_ and for the one before.
  std::vector<double> next_, awaited_;
  std::vector<MPI_Request> requests_;  // one a slave
  apps::Pace pace_;
  Outcome outcome_;
};

Master::Master(const Job& job)
    : job_(job),
      rows_(job),
      a_(numbers(rows_.front() + job.n() * job.n())),
      b_(numbers(job.n() * kept_rows(job.n(), job.options.thin))),
      c_(numbers(rows_.front() + job.n() * job.n())),
      w_(static_cast<size_t>(job.n())),
      next_(static_cast<size_t>(job.n())),
      requests_(static_cast<size_t>(job.slaves())),
      pace_(job.options.pace_mhz, static_cast<double>(job.options.make), 1) {
  if (ok()) fill_b(b_.get(), job.n(), job.options.thin);
}

void Master::prepare() {
  weigh_b(b_.get(), w_.data(), job_.n(), job_.options.thin);
  if (job_.collective()) make_matrix(0);
}

void Master::make_matrix(long iteration) {
  const long n = job_.n();
  pace_.start();
  for (long i = 0; i < n; ++i) {
    double* const row = a() + i * n;
    fill_row(row, n, iteration * n + i);
    next_[static_cast<size_t>(i)] = expected_sum(row, w_.data(), n);
    pace_.done(n);
  }
  pace_.finish();
}

void Master::look_at_results() {
  const long n = job_.n();
  for (size_t i = 0; i < awaited_.size(); ++i) {
    const double* const row = c() + static_cast<long>(i) * n;
    if (weighted_sum(row, n) != awaited_[i]) ++outcome_.wrong_rows;
    outcome_.hash = apps::hash_numbers(outcome_.hash, row, n);
  }
}

void Master::compute_alone() {
  const long n = job_.n();
  for (long row = 0; row < n; ++row) {
    multiply_row(a() + row * n, b_.get(), c() + row * n, n, job_.options.thin);
  }
}

void Master::iterate(long iteration, apps::Iterations& log) {
  const long n = job_.n();
  make_matrix(iteration);
  log.enter();
  for (int slave = 1; slave < job_.ranks; ++slave) {
    MPI_Send(a() + job_.slice(slave).first * n, job_.count(slave), MPI_DOUBLE, slave, kTagA,
             MPI_COMM_WORLD);
  }
  log.leave();
  look_at_results();  // of the matrix before
  awaited_ = next_;
  if (job_.slaves() == 0) compute_alone();
  log.enter();
  for (int slave = 1; slave < job_.ranks; ++slave) {
    MPI_Irecv(c() + job_.slice(slave).first * n, job_.count(slave), MPI_DOUBLE, slave, kTagC,
              MPI_COMM_WORLD, &requests_[static_cast<size_t>(slave - 1)]);
  }
  MPI_Waitall(job_.slaves(), requests_.data(), MPI_STATUSES_IGNORE);
  log.leave();
  log.done();
}

// The matrix of this iteration was made during the one before. As in the paper, the last iteration
// makes one that nobody needs.
void Master::iterate_collectively(long iteration, apps::Iterations& log) {
  log.enter();
  rows_.scatter(a_.get(), nullptr);
  log.leave();
  awaited_ = next_;
  make_matrix(iteration + 1);
  log.enter();
  rows_.gather(nullptr, c_.get());
  log.leave();
  look_at_results();
  log.done();
}

void Master::run(apps::Iterations& log) {
  for (long i = 0; i < job_.iterations(); ++i) {
    if (job_.collective()) {
      iterate_collectively(i, log);
    } else {
      iterate(i, log);
    }
  }
  if (!job_.collective()) look_at_results();
}

class Slave {
 public:
  explicit Slave(const Job& job);

  bool ok() const { return a_ && b_ && c_; }
  double* b() { return b_.get(); }
  void run(apps::Iterations& log);
  Outcome outcome() const;

 private:
  void compute();
  void receive();
  void send();

  const Job& job_;
  const Rows rows_;
  Slice slice_;
  Numbers a_, b_, c_;
  apps::Pace pace_;
};

Slave::Slave(const Job& job)
    : job_(job),
      rows_(job),
      slice_(job.slice(job.rank)),
      a_(numbers(slice_.rows * job.n())),
      b_(numbers(job.n() * kept_rows(job.n(), job.options.thin))),
      c_(numbers(slice_.rows * job.n())),
      pace_(job.options.pace_mhz, kCyclesPerProduct, job.slaves()) {}

void Slave::compute() {
  const long n = job_.n();
  pace_.start();
  for (long row = 0; row < slice_.rows; ++row) {
    multiply_row(a_.get() + row * n, b_.get(), c_.get() + row * n, n, job_.options.thin);
    pace_.done(n * n);
  }
  pace_.finish();
}

void Slave::receive() {
  if (job_.collective()) {
    rows_.scatter(nullptr, a_.get());
  } else {
    MPI_Request request;
    MPI_Irecv(a_.get(), job_.count(job_.rank), MPI_DOUBLE, 0, kTagA, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

void Slave::send() {
  if (job_.collective()) {
    rows_.gather(c_.get(), nullptr);
  } else {
    MPI_Send(c_.get(), job_.count(job_.rank), MPI_DOUBLE, 0, kTagC, MPI_COMM_WORLD);
  }
}

void Slave::run(apps::Iterations& log) {
  for (long i = 0; i < job_.iterations(); ++i) {
    log.enter();
    receive();
    log.leave();
    compute();
    log.enter();
    send();
    log.leave();
    log.done();
  }
}

Outcome Slave::outcome() const {
  Outcome o;
  o.late = pace_.late_seconds();
  o.blocked = pace_.blocked_seconds();
  return o;
}

// What master and slaves have in common. False: some rank has no memory.
template <class Part>
bool run(Part& part, const Job& job, apps::Iterations& log) {
  if (apps::anywhere(!part.ok())) return false;
  const long kept = kept_rows(job.n(), job.options.thin);
  for (long j = 0; j < job.n(); ++j) {  // row by row: their product may not fit into an int
    MPI_Bcast(part.b() + j * kept, static_cast<int>(kept), MPI_DOUBLE, 0, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  log.start();
  part.run(log);
  return true;
}

int work(const apps::Options& options, const apps::Place& place) {
  const Job job{options, place.rank, place.ranks};
  apps::Iterations log(job.options.warmup);
  Outcome mine;
  if (job.rank == 0) {
    Master master(job);
    if (master.ok()) master.prepare();
    mine.no_memory = !run(master, job, log);
    if (!mine.no_memory) mine = master.outcome();
  } else {
    Slave slave(job);
    mine.no_memory = !run(slave, job, log);
    if (!mine.no_memory) mine = slave.outcome();
  }
  if (mine.no_memory) {
    if (job.rank == 0) std::fprintf(stderr, "m3: no memory for size %ld\n", job.n());
    return 2;
  }
  const apps::Summary summary = log.summary(job.rank != 0 || job.ranks == 1);
  const double waits[2] = {mine.late, mine.blocked};
  double all[2] = {0, 0};
  MPI_Reduce(waits, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (job.rank != 0) return 0;
  const bool good = mine.wrong_rows == 0;
  const double slaves = job.slaves() > 0 ? job.slaves() : 1;
  std::printf(
      "{\"program\": \"m3\", \"ranks\": %d, \"size\": %ld, \"iterations\": %ld, \"warmup\": %ld, "
      "\"thin\": %ld, \"form\": \"%s\", \"pace_mhz\": %g, \"late\": %.6f, \"blocked\": %.6f, %s, "
      "\"checksum\": \"%016llx\", \"check\": \"%s\"}\n",
      job.ranks, job.n(), options.iterations, options.warmup, options.thin,
      apps::name_of(options.form), options.pace_mhz, all[0] / slaves, all[1] / slaves,
      summary.json().c_str(), static_cast<unsigned long long>(mine.hash),
      good ? "ok" : (std::to_string(mine.wrong_rows) + " rows of the results are wrong").c_str());
  std::fflush(stdout);
  return good ? 0 : 1;
}

std::string parse(int argc, char** argv, int ranks, apps::Options& options) {
  std::string wrong = apps::parse_options(argc, argv, kProgram, options);
  if (!wrong.empty() || options.help) return wrong;
  const long n = options.size, slaves = ranks - 1;
  if (n < slaves) {
    return std::to_string(n) + " rows cannot be split over " + std::to_string(slaves) + " slaves";
  }
  if (slaves > 0 && (n + slaves - 1) / slaves * n > 2147483647) {
    return "a slave's part of a matrix of " + std::to_string(n) +
           " rows is too long for one message: take more ranks";
  }
  return "";
}

}  // namespace
}  // namespace m3

int main(int argc, char** argv) {
  return apps::run_main<apps::Options>(argc, argv, "m3", m3::kUsage, m3::parse, m3::work);
}
