// N-Body: particles that attract each other, the second application of the early-release paper
// (section 3.2), written as an ordinary MPI user would. Every rank owns a block of particles. In
// each time step it sends its block to all others and receives theirs, adds up the forces of all
// particles on its own ones, its own block's first, and moves them. Nothing here knows which MPI
// library it runs on.
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "common/iterations.h"
#include "common/options.h"
#include "common/pace.h"
#include "nbody/particles.h"

namespace nbody {
namespace {

// Cycles for one pair on the papers' 733 MHz nodes: 10240 particles take 8 of them 4.68 s of
// computation (runtime of table 2 of the prefetching paper less the time on the wire).
constexpr double kCyclesPerPair = 262;

constexpr apps::Program kProgram = {
    "particles", false, 1, 10'000'000, {1024, 20}, {{10240, 200}, {20480, 100}, {40960, 50}}};

const char* const kUsage =
    "usage: nbody [options]\n"
    "Moves particles under the forces between all pairs of them; particles split over ranks.\n"
    "  --size N         particles, or A, B, C: 10240, 20480, 40960 of the papers (default 1024)\n"
    "  --iterations N   measured time steps (default 20; the papers' for A, B, C)\n"
    "  --warmup N       time steps before them, reported apart (default 0)\n"
    "  --thin N         only every N-th particle has mass: less arithmetic, same messages (1)\n"
    "  --pace MHZ       take as long for the computation as a node of that clock (733: papers' "
    "vplus)\n"
    "  --check          rank 0 also repeats the whole run alone\n"
    "Prints one line of JSON at the end.\n";

class Simulation {
 public:
  Simulation(MPI_Comm comm, const apps::Options& options);

  bool ok() const { return particles_.ok(); }

  void step(apps::Iterations& log);

  uint64_t hash();
  // The sum of mass times speed in direction `axis`. It never changes, but for rounding.
  double momentum(int axis);
  const apps::Pace& pace() const { return pace_; }

 private:
  void exchange();
  void add_block(Block block);
  // The rank `distance` further on, round the ring.
  int neighbour(int distance) const { return (rank_ + distance + ranks_) % ranks_; }
  Block block(int rank) const { return block_of(n_, rank, ranks_); }

  static int rank_in(MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
  }
  static int size_of(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
  }

  MPI_Comm comm_;
  int rank_, ranks_;
  long n_;
  Particles particles_;
  apps::Pace pace_;
};

Simulation::Simulation(MPI_Comm comm, const apps::Options& options)
    : comm_(comm),
      rank_(rank_in(comm)),
      ranks_(size_of(comm)),
      n_(options.size),
      particles_(options.size, block(rank_), options.thin),
      pace_(options.pace_mhz, kCyclesPerPair, ranks_) {}

// Everyone to everyone, each beginning with another one. The block of the next rank is needed
// first, so the first send goes to the rank before.
void Simulation::exchange() {
  std::vector<MPI_Request> requests;
  for (int distance = 1; distance < ranks_; ++distance) {
    const int from = neighbour(distance);
    const Block b = block(from);
    MPI_Irecv(particles_.all() + b.first, static_cast<int>(b.count * 7), MPI_DOUBLE, from, 0, comm_,
              &requests.emplace_back());
  }
  const Block own = particles_.own();
  for (int distance = 1; distance < ranks_; ++distance) {
    MPI_Send(particles_.all() + own.first, static_cast<int>(own.count * 7), MPI_DOUBLE,
             neighbour(-distance), 0, comm_);
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

void Simulation::add_block(Block b) {
  for (long source = b.first; source < b.first + b.count; ++source) {
    particles_.add_forces(source);
    pace_.done(particles_.own().count);
  }
}

void Simulation::step(apps::Iterations& log) {
  log.enter();
  exchange();
  log.leave();
  pace_.start();
  for (int distance = 0; distance < ranks_; ++distance) add_block(block(neighbour(distance)));
  pace_.finish();
  particles_.move();
  log.done();
}

uint64_t Simulation::hash() {
  const uint64_t mine = particles_.hash();
  uint64_t all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, comm_);
  return all;
}

double Simulation::momentum(int axis) {
  const double mine = particles_.momentum(axis);
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, comm_);
  return all;
}

// The same simulation on one rank must give the same bits.
std::string repeat_alone(apps::Options options, uint64_t hash) {
  options.pace_mhz = 0;
  Simulation alone(MPI_COMM_SELF, options);
  if (!alone.ok()) return "no memory to repeat the run on one rank";
  apps::Iterations log(0);
  for (long i = 0; i < options.warmup + options.iterations; ++i) alone.step(log);
  return alone.hash() == hash ? "" : "the particles differ from a run on one rank";
}

int work(const apps::Options& options, int rank, int ranks) {
  Simulation simulation(MPI_COMM_WORLD, options);
  const int short_of_memory = !simulation.ok();
  int any_short = 0;
  MPI_Allreduce(&short_of_memory, &any_short, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (any_short) {
    if (rank == 0) std::fprintf(stderr, "nbody: no memory for %ld particles\n", options.size);
    return 2;
  }
  double momentum[3];
  for (int axis = 0; axis < 3; ++axis) momentum[axis] = simulation.momentum(axis);
  apps::Iterations log(options.warmup);
  MPI_Barrier(MPI_COMM_WORLD);
  log.start();
  for (long i = 0; i < options.warmup + options.iterations; ++i) simulation.step(log);

  const apps::Summary summary = log.summary(true);
  double drift = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const double change = std::fabs(simulation.momentum(axis) - momentum[axis]);
    if (!(change <= drift)) drift = change;
  }
  const double mine[2] = {simulation.pace().late_seconds(), simulation.pace().blocked_seconds()};
  double waits[2] = {0, 0};
  MPI_Reduce(mine, waits, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  const uint64_t hash = simulation.hash();
  if (rank != 0) return 0;
  std::string wrong;
  if (!(drift < 1e-9)) wrong = "the momentum of the whole changed";
  if (options.check && wrong.empty()) wrong = repeat_alone(options, hash);
  std::printf(
      "{\"program\": \"nbody\", \"ranks\": %d, \"size\": %ld, \"iterations\": %ld, \"warmup\": "
      "%ld, \"thin\": %ld, \"pace_mhz\": %g, \"late\": %.6f, \"blocked\": %.6f, %s, "
      "\"momentum_drift\": %.3g, \"checksum\": \"%016llx\", \"check\": \"%s\"}\n",
      ranks, options.size, options.iterations, options.warmup, options.thin, options.pace_mhz,
      waits[0] / ranks, waits[1] / ranks, summary.json().c_str(), drift,
      static_cast<unsigned long long>(hash), wrong.empty() ? "ok" : wrong.c_str());
  std::fflush(stdout);
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace nbody

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  apps::Options options;
  std::string wrong = apps::parse_options(argc, argv, nbody::kProgram, options);
  if (wrong.empty() && !options.help && options.size < ranks) {
    wrong = std::to_string(options.size) + " particles cannot be split over " +
            std::to_string(ranks) + " ranks";
  }
  int result = 0;
  if (!wrong.empty()) {
    if (rank == 0) std::fprintf(stderr, "nbody: %s\n%s", wrong.c_str(), nbody::kUsage);
    result = 2;
  } else if (options.help) {
    if (rank == 0) std::fputs(nbody::kUsage, stdout);
  } else {
    result = nbody::work(options, rank, ranks);
  }
  MPI_Finalize();
  return result;
}
