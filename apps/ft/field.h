// Field: the field of ft as one rank knows it, in space and as waves, and the numerical work on it.
// It knows nothing of MPI. Thread: main. Owns its arrays.
//
// In space a rank owns `depth` planes of equal z, as waves `width` planes of equal y. `waves_` lies
// z by z, then x, then y. What is sent after the transform along z lies just as the receiver wants
// it: to each rank a block of [y][x][z], its own z alone; all blocks received, one behind the
// other, are its part of the field, [y][x][z]. So nothing is packed or unpacked: the sender writes
// every block from its first to its last page, and the receiver reads it in the same order.
//
// Invariant: the result is the same to the last bit for any number of ranks, as every point of a
// transform is computed alike whatever lies beside it.
#pragma once

#include <cstdint>
#include <vector>

#include "common/array.h"
#include "ft/fft.h"

namespace ft {

struct Shape {
  long nx, ny, nz;  // powers of two

  long points() const { return nx * ny * nz; }
};

class Field {
 public:
  // Thinned, only every `thin`-th x is a point of the problem; those between are copies of it.
  // `ranks` divides ny and nz.
  Field(Shape shape, long thin, int rank, int ranks);

  bool ok() const { return waves_ && sent_ && received_ && work_ && spare_; }

  // The initial field, random, becomes waves: begin_start(), everyone's received() to everyone's
  // sent(), block by block; end_start().
  void begin_start();
  void end_start();

  // One time step: every wave fades; then back to space. One line along z each; all lines in order
  // fill sent(). Without `evolve` nothing fades.
  void send_line(long line, bool evolve);
  // The rest of the way, after the exchange: first each row of each y, then each x.
  void along_x(long y) { along_x(y, Direction::inverse); }
  void along_y(long x) { along_y(x, Direction::inverse); }

  Complex* sent() { return sent_.get(); }
  Complex* received() { return received_.get(); }
  long block() const { return width_ * shape_.nx * depth_; }  // numbers for one rank
  long lines() const { return width_ * kept_; }
  long columns() const { return kept_; }  // for along_y
  long width() const { return width_; }   // y of each rank
  long line_points() const { return shape_.nz * thin_; }
  long row_points() const { return shape_.nx * depth_; }
  long column_points() const { return shape_.ny * depth_ * thin_; }

  // This rank's part of the sum of 1024 points, over the number of all; and of a hash of their
  // bits.
  Complex sum_of_probes() const;
  uint64_t hash_of_probes(uint64_t key) const;

  // This rank's part of a hash of all bits of the field.
  uint64_t hash() const;
  // Sums of squares in space (0) and as waves (1). By Parseval's theorem the first is the number of
  // points times the second.
  double energy(bool waves) const;
  // The largest distance to the initial field, where nothing has faded.
  double distance_to_start() const;
  // Copies that differed from their original when they were received.
  long wrong_copies() const { return wrong_copies_; }
  long problem_points() const { return kept_ * shape_.ny * shape_.nz; }

 private:
  template <class Use>
  void each_start(Use use) const;
  template <class Use>
  void each_probe(Use use) const;

  void along_x(long y, Direction direction);
  void along_y(long x, Direction direction);
  void transform(const Fft& fft, Direction direction, Complex* first, long rows, long stride);
  void look_at_copies(const Complex* row);
  void fade(Complex* wave, long line) const;

  // Position of (x, y) and this rank's first z in received(); x counts the points of the problem.
  long place(long x, long y) const { return (y * shape_.nx + x * thin_) * depth_; }

  const Shape shape_;
  const long thin_, kept_;  // kept_: x of the problem
  const long width_, depth_;
  const long first_y_, first_z_;
  const Fft fft_x_, fft_y_, fft_z_;
  std::vector<double> fading_[3];  // in one time step, by wave number
  apps::Array<Complex> waves_, sent_, received_, work_, spare_;
  long wrong_copies_ = 0;
};

}  // namespace ft
