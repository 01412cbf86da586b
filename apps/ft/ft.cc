// FT of the NAS benchmarks: a partial differential equation, solved with Fourier transforms of
// three dimensions, our own code. Each rank owns planes of the field. The field becomes waves once;
// then, in each time step, the waves fade, each by its own factor, and become the field again: they
// are transformed along z, exchanged by MPI_Alltoall, and transformed along x and y. 1024 points of
// the field are added up, and the sums are compared with those that NAS publishes.
//
// The send buffer of MPI_Alltoall is what the transform along z writes, line by line, each block
// from its first page to its last, once in a time step: a library that sends pages before the call
// finds them final while the computation still runs. The receive buffer is read in the same order,
// the rank's own block first, then the next rank's and so on. Nothing here knows which MPI library
// it runs on.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "common/iterations.h"
#include "common/nas.h"
#include "common/pace.h"
#include "common/world.h"
#include "ft/field.h"
#include "ft/published.h"

namespace ft {
namespace {

// Cycles for one point and time step on the papers' 733 MHz nodes: class C takes 8 of them 103.1 s
// of computation (runtime of table 2 of the prefetching paper less the time on the wire). That the
// three transforms cost the same is an assumption.
constexpr double kCyclesPerPoint = 4504;

constexpr long kIterations[apps::kNasClasses] = {6, 6, 6, 20, 20};
constexpr Shape kShapes[apps::kNasClasses] = {
    {64, 64, 64}, {128, 128, 32}, {256, 256, 128}, {512, 256, 256}, {512, 512, 512}};

constexpr double kTolerance = 1e-12;  // of NAS

const char* const kUsage =
    "usage: ft [options]\n"
    "FT of the NAS benchmarks: a 3-D partial differential equation, solved with Fourier "
    "transforms;\n"
    "planes split over a power of two of ranks.\n"
    "  --class C        S, W, A, B or C: 64 x 64 x 64, 128 x 128 x 32, 256 x 256 x 128,\n"
    "                   512 x 256 x 256, 512 x 512 x 512 points (default S)\n"
    "  --iterations N   measured time steps (default 6; 20 for B and C)\n"
    "  --warmup N       time steps before them, reported apart (default 0)\n"
    "  --thin N         only every N-th x is a point, the others are copies: less arithmetic, same "
    "messages;\n"
    "                   a power of two (1)\n"
    "  --pace MHZ       take as long for the computation as a node of that clock (733: papers' "
    "vplus)\n"
    "  --check          also go to waves and back before the run, and repeat it on rank 0 alone\n"
    "Prints one line of JSON at the end.\n";

class Simulation {
 public:
  Simulation(MPI_Comm comm, const apps::NasOptions& options);

  bool ok() const { return field_.ok(); }

  // The initial field as waves.
  void start();
  // Back to the initial field. Returns the largest distance to it, which is rounding.
  double there_and_back();
  void step(apps::Iterations& log);

  uint64_t hash();
  // How far the energy of the field is from that of the waves, over the energy; rank 0 knows.
  double energy_error();
  long wrong_copies();
  // After each time step; rank 0 has them.
  const std::vector<Complex>& checksums() const { return checksums_; }
  const apps::Pace& pace() const { return pace_; }

 private:
  void exchange(Complex* from, Complex* to);
  void to_blocks(bool evolve);
  void to_field();

  MPI_Comm comm_;
  apps::Place place_;
  Field field_;
  apps::Pace pace_;
  std::vector<Complex> checksums_;
  uint64_t probes_hash_ = 0;
};

Simulation::Simulation(MPI_Comm comm, const apps::NasOptions& options)
    : comm_(comm),
      place_(apps::place_in(comm)),
      field_(kShapes[options.index()], options.thin, place_.rank, place_.ranks),
      pace_(options.pace_mhz, kCyclesPerPoint / 3, apps::kCoarse * place_.ranks) {}

void Simulation::exchange(Complex* from, Complex* to) {
  const int count = static_cast<int>(2 * field_.block());
  MPI_Alltoall(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, comm_);
}

void Simulation::start() {
  field_.begin_start();
  exchange(field_.received(), field_.sent());
  field_.end_start();
}

void Simulation::to_blocks(bool evolve) {
  for (long line = 0; line < field_.lines(); ++line) {
    field_.send_line(line, evolve);
    pace_.done(field_.line_points());
  }
}

void Simulation::to_field() {
  const long width = field_.width();
  for (int distance = 0; distance < place_.ranks; ++distance) {
    const long first = (place_.rank + distance) % place_.ranks * width;
    for (long y = first; y < first + width; ++y) {
      field_.along_x(y);
      pace_.done(field_.row_points());
    }
  }
  for (long x = 0; x < field_.columns(); ++x) {
    field_.along_y(x);
    pace_.done(field_.column_points());
  }
}

double Simulation::there_and_back() {
  pace_.start();
  to_blocks(false);
  exchange(field_.sent(), field_.received());
  to_field();
  const double mine = field_.distance_to_start();
  double largest = 0;
  MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, comm_);
  return largest;
}

void Simulation::step(apps::Iterations& log) {
  pace_.start();
  to_blocks(true);
  pace_.finish();
  log.enter();
  exchange(field_.sent(), field_.received());
  log.leave();
  pace_.start();
  to_field();
  pace_.finish();
  const Complex mine = field_.sum_of_probes();
  Complex all = {0, 0};
  log.enter();
  MPI_Reduce(&mine, &all, 2, MPI_DOUBLE, MPI_SUM, 0, comm_);
  log.leave();
  checksums_.push_back(all);
  probes_hash_ += field_.hash_of_probes(checksums_.size());
  log.done();
}

uint64_t Simulation::hash() { return apps::sum_of_hashes(probes_hash_ + field_.hash(), comm_); }

double Simulation::energy_error() {
  const double mine[2] = {field_.energy(false), field_.energy(true)};
  double all[2] = {0, 0};
  MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, comm_);
  const double expected = all[1] * static_cast<double>(field_.problem_points());
  return std::fabs(all[0] - expected) / expected;
}

long Simulation::wrong_copies() {
  const long mine = field_.wrong_copies();
  long all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, comm_);
  return all;
}

// The same simulation on one rank must give the same bits.
std::string repeat_alone(apps::NasOptions options, uint64_t hash) {
  options.pace_mhz = 0;
  Simulation alone(MPI_COMM_SELF, options);
  if (!alone.ok()) return "no memory to repeat the run on one rank";
  alone.start();
  apps::Iterations log(0);
  for (long i = 0; i < options.all_iterations(); ++i) alone.step(log);
  return alone.hash() == hash ? "" : "the field differs from a run on one rank";
}

// How well the run agrees with what NAS publishes.
struct Comparison {
  size_t compared = 0;  // time steps
  double error = 0;     // the largest, relative
};

Comparison compare(const apps::NasOptions& options, const std::vector<Complex>& checksums) {
  Comparison c;
  if (options.thin > 1) return c;  // another problem
  const Published& published = kPublished[options.index()];
  c.compared = std::min(published.steps, checksums.size());
  for (size_t i = 0; i < c.compared; ++i) {
    const double re = std::fabs(checksums[i].re / published.sums[i].re - 1);
    const double im = std::fabs(checksums[i].im / published.sums[i].im - 1);
    if (!(re <= c.error)) c.error = re;
    if (!(im <= c.error)) c.error = im;
  }
  return c;
}

std::string own_keys(const Comparison& nas, double energy_error, Complex last) {
  char error[32] = "null", text[256];
  if (nas.compared > 0) std::snprintf(error, sizeof error, "%.3g", nas.error);
  std::snprintf(text, sizeof text,
                "\"nas_compared\": %zu, \"nas_error\": %s, \"energy_error\": %.3g, "
                "\"nas_checksum\": [%.13g, %.13g], ",
                nas.compared, error, energy_error, last.re, last.im);
  return text;
}

// What rank 0 says about the run; all ranks call it.
apps::NasOutcome judge(Simulation& simulation, const apps::NasOptions& options, double distance,
                       int rank) {
  apps::NasOutcome outcome;
  outcome.hash = simulation.hash();
  const double energy_error = simulation.energy_error();
  const long wrong_copies = simulation.wrong_copies();
  if (rank != 0) return outcome;
  const Comparison nas = compare(options, simulation.checksums());
  outcome.own = own_keys(nas, energy_error, simulation.checksums().back());
  if (!(nas.error <= kTolerance)) {
    outcome.wrong = "the checksums are not those that NAS publishes";
  } else if (!(energy_error <= kTolerance)) {
    outcome.wrong = "the energy of the field is not that of the waves";
  } else if (wrong_copies > 0) {
    outcome.wrong = std::to_string(wrong_copies) + " copies came with other values";
  } else if (!(distance <= kTolerance)) {
    outcome.wrong = "waves and back did not give the initial field";
  } else if (options.check) {
    outcome.wrong = repeat_alone(options, outcome.hash);
  }
  return outcome;
}

int work(const apps::NasOptions& options, const apps::Place& place) {
  Simulation simulation(MPI_COMM_WORLD, options);
  if (apps::anywhere(!simulation.ok())) {
    if (place.rank == 0) std::fprintf(stderr, "ft: no memory for class %c\n", options.letter);
    return 2;
  }
  simulation.start();
  const double distance = options.check ? simulation.there_and_back() : 0;
  apps::Iterations log(options.warmup);
  MPI_Barrier(MPI_COMM_WORLD);
  log.start();
  for (long i = 0; i < options.all_iterations(); ++i) simulation.step(log);
  const apps::NasOutcome outcome = judge(simulation, options, distance, place.rank);
  return apps::report("ft", options, place, log, simulation.pace(), outcome);
}

std::string parse(int argc, char** argv, int ranks, apps::NasOptions& options) {
  std::string wrong = apps::parse_nas_options(argc, argv, kIterations, options);
  const Shape& shape = kShapes[options.index()];
  if (wrong.empty() && !options.help && (shape.ny % ranks != 0 || shape.nz % ranks != 0)) {
    wrong = std::string("class ") + options.letter + " cannot be split over " +
            std::to_string(ranks) + " ranks: a power of two is wanted, " +
            std::to_string(std::min(shape.ny, shape.nz)) + " at most";
  }
  return wrong;
}

}  // namespace
}  // namespace ft

int main(int argc, char** argv) {
  return apps::run_main<apps::NasOptions>(argc, argv, "ft", ft::kUsage, ft::parse, ft::work);
}
