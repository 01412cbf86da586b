// N-Body: particles that attract each other, the second application of the early-release paper
// (section 3.2), written as an ordinary MPI user would. Every rank owns a block of particles. In
// each time step it sends its block to all others and receives theirs, adds up the forces of all
// particles on its own ones, its own block's first, and moves them. In the other form, that of the
// prefetching paper's appendix, MPI_Allgather exchanges the blocks, and one own particle is moved
// after the other. Nothing here knows which MPI library it runs on.
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "common/iterations.h"
#include "common/options.h"
#include "common/pace.h"
#include "common/world.h"
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
    "  --form FORM      messages: Send, Irecv, Waitall (default); collective: Allgather\n"
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
  void allgather();
  void add_block(Block block);
  void update();
  // The rank `distance` further on, round the ring.
  int neighbour(int distance) const { return (rank_ + distance + ranks_) % ranks_; }
  Block block(int rank) const { return block_of(n_, rank, ranks_); }

  MPI_Comm comm_;
  apps::Form form_;
  int rank_, ranks_;
  long n_;
  Particles particles_;
  apps::Pace pace_;
};

Simulation::Simulation(MPI_Comm comm, const apps::Options& options)
    : comm_(comm),
      form_(options.form),
      rank_(apps::place_in(comm).rank),
      ranks_(apps::place_in(comm).ranks),
      n_(options.size),
      particles_(options.size, block(rank_), options.thin, form_ == apps::Form::collective),
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

// All blocks are as long, or some are longer by one.
void Simulation::allgather() {
  const int own = static_cast<int>(particles_.own().count * 7);
  if (n_ % ranks_ == 0) {
    MPI_Allgather(particles_.mine(), own, MPI_DOUBLE, particles_.all(), own, MPI_DOUBLE, comm_);
    return;
  }
  std::vector<int> counts, starts;
  for (int rank = 0; rank < ranks_; ++rank) {
    counts.push_back(static_cast<int>(block(rank).count * 7));
    starts.push_back(static_cast<int>(block(rank).first * 7));
  }
  MPI_Allgatherv(particles_.mine(), own, MPI_DOUBLE, particles_.all(), counts.data(), starts.data(),
                 MPI_DOUBLE, comm_);
}

void Simulation::add_block(Block b) {
  for (long source = b.first; source < b.first + b.count; ++source) {
    particles_.add_forces(source);
    pace_.done(particles_.own().count);
  }
}

void Simulation::step(apps::Iterations& log) {
  log.enter();
  if (form_ == apps::Form::collective) {
    allgather();
  } else {
    exchange();
  }
  log.leave();
  pace_.start();
  if (form_ == apps::Form::collective) {
    update();
  } else {
    for (int distance = 0; distance < ranks_; ++distance) add_block(block(neighbour(distance)));
  }
  pace_.finish();
  if (form_ != apps::Form::collective) particles_.move();
  log.done();
}

// The appendix says "update local particles" and no more: one particle after the other.
void Simulation::update() {
  for (long i = 0; i < particles_.own().count; ++i) {
    particles_.update(i);
    pace_.done(n_);
  }
}

uint64_t Simulation::hash() { return apps::sum_of_hashes(particles_.hash(), comm_); }

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

int work(const apps::Options& options, const apps::Place& place) {
  const int ranks = place.ranks;
  Simulation simulation(MPI_COMM_WORLD, options);
  if (apps::anywhere(!simulation.ok())) {
    if (place.rank == 0) std::fprintf(stderr, "nbody: no memory for %ld particles\n", options.size);
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
  if (place.rank != 0) return 0;
  std::string wrong;
  if (!(drift < 1e-9)) wrong = "the momentum of the whole changed";
  if (options.check && wrong.empty()) wrong = repeat_alone(options, hash);
  std::printf(
      "{\"program\": \"nbody\", \"ranks\": %d, \"size\": %ld, \"iterations\": %ld, \"warmup\": "
      "%ld, \"thin\": %ld, \"form\": \"%s\", \"pace_mhz\": %g, \"late\": %.6f, \"blocked\": %.6f, "
      "%s, \"momentum_drift\": %.3g, \"checksum\": \"%016llx\", \"check\": \"%s\"}\n",
      ranks, options.size, options.iterations, options.warmup, options.thin,
      apps::name_of(options.form), options.pace_mhz, waits[0] / ranks, waits[1] / ranks,
      summary.json().c_str(), drift, static_cast<unsigned long long>(hash),
      wrong.empty() ? "ok" : wrong.c_str());
  std::fflush(stdout);
  return wrong.empty() ? 0 : 1;
}

std::string parse(int argc, char** argv, int ranks, apps::Options& options) {
  std::string wrong = apps::parse_options(argc, argv, kProgram, options);
  if (wrong.empty() && !options.help && options.size < ranks) {
    wrong = std::to_string(options.size) + " particles cannot be split over " +
            std::to_string(ranks) + " ranks";
  }
  return wrong;
}

}  // namespace
}  // namespace nbody

int main(int argc, char** argv) {
  return apps::run_main<apps::Options>(argc, argv, "nbody", nbody::kUsage, nbody::parse,
                                       nbody::work);
}
