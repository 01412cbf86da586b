// Iterations: what each iteration took on this rank, and of that inside MPI calls; at the end, what
// they took on all ranks together. Thread: main. Owns its figures. Invariant: iterations before
// `warmup` are reported apart and count for nothing else.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace apps {

// Seconds of one iteration.
struct Summary {
  double mean = 0;         // of all measured iterations and ranks
  double median = 0;       // of the means over ranks
  double warmup_mean = 0;  // of all ranks
  double computing = 0;    // outside MPI calls, mean over the ranks that compute
  double communicating = 0;
  std::vector<double> parts;  // means of up to 20 equal parts of the run, in order, over ranks

  std::string json() const;  // "iteration": {...}
};

class Iterations {
 public:
  explicit Iterations(long warmup) : warmup_(warmup) {}

  void start() { last_ = MPI_Wtime(); }

  // Around MPI calls whose time counts as communication.
  void enter() { in_mpi_ -= MPI_Wtime(); }
  void leave() { in_mpi_ += MPI_Wtime(); }

  // One iteration has ended, and the next begins.
  void done();

  // All ranks of MPI_COMM_WORLD together. `computes`: this rank counts in Summary::computing.
  Summary summary(bool computes) const;

  // Measured iterations: seconds inside MPI calls, and in all.
  std::vector<double> in_mpi() const { return measured(mpi_seconds_); }
  std::vector<double> total() const { return measured(seconds_); }

 private:
  std::vector<double> measured(const std::vector<double>& all) const;

  long warmup_;
  double last_ = 0;
  double in_mpi_ = 0;
  std::vector<double> seconds_, mpi_seconds_;
};

}  // namespace apps
