// PES: an iterative 2-D Poisson solver, the first application of the early-release and prefetching
// papers, written as an ordinary MPI user would. Every rank owns a block of rows. In each iteration
// it sends its first row to the rank above and its last row to the rank below, receives their
// neighbouring rows as ghost rows, and computes every point anew as the mean of its four
// neighbours. Nothing here knows which MPI library it runs on.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "common/iterations.h"
#include "common/pace.h"
#include "common/world.h"
#include "pes/field.h"
#include "pes/options.h"

namespace pes {
namespace {

// Cycles for one point on the papers' 733 MHz nodes: 5120 x 5120 points take 8 of them 0.362 s of
// computation (runtime of table 2 of the prefetching paper less the time on the wire).
constexpr double kCyclesPerPoint = 81;

constexpr int kTagDown = 1;  // a row that travels to the rank below
constexpr int kTagUp = 2;

// One rank's part of a run on the ranks of `comm`.
class Solver {
 public:
  Solver(MPI_Comm comm, const Options& options);

  bool ok() const { return field_.ok(); }
  Field& field() { return field_; }

  void iterate(apps::Iterations& log);

  // One exchange of ghost rows with nothing to hide it behind. Returns its seconds.
  double exchange_alone();

  double residual();
  double error() { return largest(field_.error()); }
  uint64_t hash();
  const apps::Pace& pace() const { return pace_; }

 private:
  double largest(double mine);
  void update_rows(long from, long to);

  MPI_Comm comm_;
  apps::Place place_;
  Order order_;
  int above_ = MPI_PROC_NULL, below_ = MPI_PROC_NULL;
  Field field_;
  apps::Pace pace_;
};

Solver::Solver(MPI_Comm comm, const Options& options)
    : comm_(comm),
      place_(apps::place_in(comm)),
      order_(options.order),
      field_(options.n, options.rows, place_.rank, place_.ranks, options.problem),
      pace_(options.pace_mhz, kCyclesPerPoint, place_.ranks) {
  // At the ends of the grid MPI_PROC_NULL stays: messages to and from it do nothing.
  if (place_.rank > 0) above_ = place_.rank - 1;
  if (place_.rank < place_.ranks - 1) below_ = place_.rank + 1;
}

void Solver::update_rows(long from, long to) {
  pace_.start();
  for (long local = from; local <= to; ++local) {
    field_.update(local);
    pace_.done(field_.width());
  }
  pace_.finish();
}

void Solver::iterate(apps::Iterations& log) {
  const int n = static_cast<int>(field_.width());
  const long last = field_.rows();
  MPI_Request requests[4];
  log.enter();
  MPI_Irecv(field_.row(0), n, MPI_DOUBLE, above_, kTagDown, comm_, &requests[0]);
  MPI_Irecv(field_.row(last + 1), n, MPI_DOUBLE, below_, kTagUp, comm_, &requests[1]);

  if (order_ == Order::paper) {
    MPI_Send(field_.row(1), n, MPI_DOUBLE, above_, kTagUp, comm_);
    MPI_Send(field_.row(last), n, MPI_DOUBLE, below_, kTagDown, comm_);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    log.leave();
    update_rows(1, last);
  } else {
    MPI_Isend(field_.row(1), n, MPI_DOUBLE, above_, kTagUp, comm_, &requests[2]);
    MPI_Isend(field_.row(last), n, MPI_DOUBLE, below_, kTagDown, comm_, &requests[3]);
    log.leave();
    update_rows(2, last - 1);  // these need no ghost row
    log.enter();
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    log.leave();
    update_rows(1, 1);
    if (last > 1) update_rows(last, last);
  }
  field_.step();
  log.done();
}

double Solver::exchange_alone() {
  const int n = static_cast<int>(field_.width());
  const long last = field_.rows();
  // In a real iteration the rows were just written, so they lie in the sender's cache.
  for (const long local : {1L, last}) {
    volatile double* const row = field_.row(local);
    for (int j = 0; j < n; ++j) row[j] = row[j];
  }
  MPI_Request requests[2];
  const double start = MPI_Wtime();
  MPI_Irecv(field_.row(0), n, MPI_DOUBLE, above_, kTagDown, comm_, &requests[0]);
  MPI_Irecv(field_.row(last + 1), n, MPI_DOUBLE, below_, kTagUp, comm_, &requests[1]);
  MPI_Send(field_.row(1), n, MPI_DOUBLE, above_, kTagUp, comm_);
  MPI_Send(field_.row(last), n, MPI_DOUBLE, below_, kTagDown, comm_);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  return MPI_Wtime() - start;
}

double Solver::largest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, comm_);
  return all;
}

double Solver::residual() {
  exchange_alone();  // makes the ghost rows current
  return largest(field_.residual());
}

uint64_t Solver::hash() { return apps::sum_of_hashes(field_.hash(), comm_); }

double mean_over_ranks(double mine, int ranks) {
  double sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum / ranks;
}

double sum_of(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

// For every exchange the shortest wait of any rank. Ranks are never quite in step; who comes early
// waits for a neighbour that still computes, and that is no fault of the communication. The rank
// that comes last waits for nobody: what it waits is the price of the messages.
std::vector<double> shortest(const std::vector<double>& mine) {
  std::vector<double> least(mine.size());
  MPI_Allreduce(mine.data(), least.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MIN,
                MPI_COMM_WORLD);
  return least;
}

// What a typical one of these took: the median of the means of 16 in a row. On a machine shared
// with other programs a few iterations lose milliseconds to them: a median. Ranks drift and catch
// up within a few iterations: of means.
double typical(const std::vector<double>& seconds) {
  constexpr size_t kBlock = 16;
  std::vector<double> means;
  for (size_t from = 0; from < seconds.size(); from += kBlock) {
    const size_t to = std::min(seconds.size(), from + kBlock);
    const double sum = std::accumulate(&seconds[from], seconds.data() + to, 0.0);
    means.push_back(sum / static_cast<double>(to - from));
  }
  const auto middle = means.begin() + static_cast<long>(means.size() / 2);
  std::nth_element(means.begin(), middle, means.end());
  return *middle;
}

// What one run measured, in seconds.
struct Timing {
  double total = 0;      // the loop, slowest rank
  double computing = 0;  // outside MPI calls, mean over ranks
  double waiting = 0;    // inside MPI calls, mean over ranks
  double imbalance = 0;  // the part of it that early ranks waited for late ones
  double late = 0;       // how much slower than --pace the computation was
  double blocked = 0;    // in which it waited for data
  double visible = 0;    // communication of a typical iteration that nothing hid
  double alone = 0;      // communication of a typical exchange without computation
  apps::Summary each;    // iteration
};

std::vector<double> exchanges_alone(Solver& solver, long count) {
  for (int i = 0; i < 4; ++i) solver.exchange_alone();  // the first ones make connections
  std::vector<double> seconds(static_cast<size_t>(count));
  for (double& once : seconds) once = solver.exchange_alone();
  return seconds;
}

Timing run(Solver& solver, const Options& options, int ranks) {
  Timing t;
  if (options.alone > 0) t.alone = typical(shortest(exchanges_alone(solver, options.alone)));
  apps::Iterations log(options.warmup);
  MPI_Barrier(MPI_COMM_WORLD);
  log.start();
  for (long i = 0; i < options.warmup + options.iterations; ++i) solver.iterate(log);

  t.each = log.summary(true);
  const std::vector<double> waits = log.in_mpi();
  t.total = t.each.mean * static_cast<double>(options.iterations);
  t.computing = mean_over_ranks(sum_of(log.total()) - sum_of(waits), ranks);
  t.waiting = mean_over_ranks(sum_of(waits), ranks);
  t.late = mean_over_ranks(solver.pace().late_seconds(), ranks);
  t.blocked = mean_over_ranks(solver.pace().blocked_seconds(), ranks);
  const std::vector<double> messages = shortest(waits);
  t.imbalance = t.waiting - sum_of(messages);
  t.visible = typical(messages);
  return t;
}

// Collects the field row by row at rank 0, which writes it. Returns false if writing failed.
bool write_field(const Field& field, const std::string& file, int rank, int ranks) {
  const int n = static_cast<int>(field.width());
  if (rank != 0) {
    const long rows = field.rows();
    MPI_Send(&rows, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
    for (long local = 1; local <= rows; ++local) {
      MPI_Send(field.row(local), n, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
    return true;
  }
  FILE* const out = std::fopen(file.c_str(), "wb");
  const int64_t shape[2] = {field.height(), n};
  bool good = out != nullptr && std::fwrite("PESFIELD", 8, 1, out) == 1 &&
              std::fwrite(shape, sizeof shape, 1, out) == 1;
  std::vector<double> line(static_cast<size_t>(n));
  for (int from = 0; from < ranks; ++from) {
    long rows = field.rows();
    if (from != 0) MPI_Recv(&rows, 1, MPI_LONG, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (long local = 1; local <= rows; ++local) {
      const double* data = field.row(local);
      if (from != 0) {
        MPI_Recv(line.data(), n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        data = line.data();
      }
      good = good && std::fwrite(data, sizeof(double), line.size(), out) == line.size();
    }
  }
  if (out != nullptr && std::fclose(out) != 0) good = false;
  if (!good) std::perror(("pes: cannot write " + file).c_str());
  return good;
}

// What the run is judged by. Only rank 0's `wrong` counts.
struct Verdict {
  double residual_first = 0, residual_last = 0;
  double error_first = 0, error_last = 0;
  uint64_t hash = 0;
  std::string wrong;
};

void judge(Verdict& v, const Options& options, int rank) {
  if (rank != 0) return;
  if (!(v.residual_last < v.residual_first)) v.wrong = "the residual did not fall";
  if (options.problem == Problem::corners && !(v.error_last <= v.error_first)) {
    v.wrong = "the distance to the exact solution grew";
  }
  // The same program on one rank must give the same bits.
  Options alone_options = options;
  alone_options.pace_mhz = 0;
  Solver alone(MPI_COMM_SELF, alone_options);
  if (!alone.ok()) {
    v.wrong = "no memory to repeat the run on one rank";
    return;
  }
  apps::Iterations log(0);
  for (long i = 0; i < options.warmup + options.iterations; ++i) alone.iterate(log);
  if (alone.hash() != v.hash) v.wrong = "the field differs from a run on one rank";
}

void print(const Options& o, const Timing& t, const Verdict& v, int ranks) {
  const double iterations = static_cast<double>(o.iterations);
  std::printf(
      "{\"program\": \"pes\", \"ranks\": %d, \"n\": %ld, \"rows\": %ld, \"iterations\": %ld, "
      "\"warmup\": %ld, \"order\": \"%s\", \"form\": \"%s\", "
      "\"problem\": \"%s\", \"pace_mhz\": %g, \"seconds\": %.6f, \"computing\": %.6f, "
      "\"waiting\": %.6f, \"imbalance\": %.6f, \"late\": %.6f, \"blocked\": %.6f, "
      "\"communication\": %.6f, \"communication_alone\": %.6f, %s, ",
      ranks, o.n, o.rows, o.iterations, o.warmup, name_of(o.order), apps::name_of(o.form),
      name_of(o.problem), o.pace_mhz, t.total, t.computing, t.waiting, t.imbalance, t.late,
      t.blocked, t.visible * iterations, t.alone * iterations, t.each.json().c_str());
  // One rank has nobody to exchange rows with, so nothing could be hidden.
  if (ranks > 1 && t.alone > 0) {
    std::printf("\"hidden\": %.4f, ", 1 - t.visible / t.alone);
  } else {
    std::printf("\"hidden\": null, ");
  }
  std::printf("\"residual_first\": %.9g, \"residual_last\": %.9g, ", v.residual_first,
              v.residual_last);
  if (o.problem == Problem::corners) {
    std::printf("\"error_first\": %.9g, \"error_last\": %.9g, ", v.error_first, v.error_last);
  }
  std::printf("\"checksum\": \"%016llx\", \"check\": \"%s\"}\n",
              static_cast<unsigned long long>(v.hash),
              !o.check          ? "not asked"
              : v.wrong.empty() ? "ok"
                                : v.wrong.c_str());
  std::fflush(stdout);
}

int work(const Options& options, const apps::Place& place) {
  const int rank = place.rank, ranks = place.ranks;
  Solver solver(MPI_COMM_WORLD, options);
  if (apps::anywhere(!solver.ok())) {
    if (rank == 0) std::fprintf(stderr, "pes: not enough memory for N = %ld\n", options.n);
    return 2;
  }

  Verdict v;
  v.residual_first = solver.residual();
  if (options.problem == Problem::corners) v.error_first = solver.error();
  const Timing timing = run(solver, options, ranks);
  v.residual_last = solver.residual();
  if (options.problem == Problem::corners) v.error_last = solver.error();
  v.hash = solver.hash();

  bool written = true;
  if (!options.out.empty()) written = write_field(solver.field(), options.out, rank, ranks);
  if (options.check) judge(v, options, rank);
  if (rank == 0) print(options, timing, v, ranks);
  return written && v.wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace pes

int main(int argc, char** argv) {
  return apps::run_main<pes::Options>(argc, argv, "pes", pes::usage, pes::parse_options, pes::work);
}
