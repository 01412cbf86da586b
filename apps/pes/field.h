// Field: the rows of the grid that one rank owns, with a ghost row above and below, and the
// numerical work on them. It knows nothing of MPI. Thread: main. Owns its two arrays. Invariant:
// the boundary of the grid has its fixed values in both arrays.
//
// Jacobi's method reads one array and writes the other, so a point's new value depends on the
// iteration alone and never on the order in which rows or ranks work: the result is the same to
// the last bit for any number of ranks.
//
// Boundary: the papers fix the corners, (0,0) = (N-1,N-1) = 1 and (0,N-1) = (N-1,0) = 0, and say
// nothing of the edges. Here an edge falls linearly from its 1 to its 0. That fits the corners
// without a jump, and the solution of the problem without charges is then known exactly, also on
// the grid: u = 1 - x - y + 2xy. The program checks itself against it.
#pragma once

#include <cstdint>

#include "pes/options.h"

namespace pes {

class Field {
 public:
  // Of `height` rows of n points rank `part` of `parts` gets height / parts rows, the first
  // height % parts ranks one more. `ok()` is false if there was not enough memory.
  Field(long n, long height, int part, int parts, Problem problem);
  ~Field();
  Field(const Field&) = delete;
  Field& operator=(const Field&) = delete;

  bool ok() const { return now_ != nullptr && next_ != nullptr; }
  long width() const { return n_; }
  long height() const { return height_; }
  long rows() const { return rows_; }

  // Row `local` of the current iteration: 1 to rows() are this rank's, 0 and rows() + 1 ghosts.
  double* row(long local) { return now_ + local * n_; }
  const double* row(long local) const { return now_ + local * n_; }

  // Computes row `local` of the next iteration. A fixed row of the boundary stays as it is.
  void update(long local);

  // The rows computed become the current ones.
  void step();

  // Largest change that one more sweep would make. Ghost rows must be current.
  double residual() const;

  // Largest difference from the exact solution of Problem::corners.
  double error() const;

  // Hash of the bits of this rank's rows. The sum over ranks, modulo 2^64, does not depend on how
  // the rows are split.
  uint64_t hash() const;

 private:
  double exact(long global_row, long column) const;
  bool is_boundary(long local) const;
  void fill(Problem problem);
  void add_charges(long local, double* out) const;

  const long n_, height_;
  const Problem problem_;
  long first_ = 0;  // global number of local row 1
  long rows_ = 0;
  double* now_ = nullptr;
  double* next_ = nullptr;
};

}  // namespace pes
