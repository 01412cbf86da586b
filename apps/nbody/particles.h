// Particles: all particles of the simulation as one rank knows them, the forces on its own ones and
// their movement: of all of them with one source after another, or of one after another with all
// sources; then the own ones are kept apart, since the others still need their old positions. It
// knows nothing of MPI. Thread: main. Owns its arrays. Invariant: `all()` is one plain array of 56
// bytes a particle, in the same order on every rank.
//
// The result is the same to the last bit for any number of ranks and any order of blocks: each
// pair's contribution is rounded to a multiple of 2^-40, so that sums of them are exact.
#pragma once

#include <cstdint>
#include <vector>

namespace nbody {

struct Particle {
  double mass;
  double at[3];
  double speed[3];
};
static_assert(sizeof(Particle) == 56, "as in the papers");

// The consecutive particles of one rank.
struct Block {
  long first, count;
};

Block block_of(long n, int part, int parts);

class Particles {
 public:
  // Of n particles on a disc that turns, only every `thin`-th has mass. The others move in its
  // field, and nobody feels them.
  // `apart`: the own ones lie apart from all(), and are moved by update().
  Particles(long n, Block own, long thin, bool apart);
  ~Particles();
  Particles(const Particles&) = delete;
  Particles& operator=(const Particles&) = delete;

  bool ok() const { return all_ != nullptr && mine_ != nullptr; }
  Particle* all() { return all_; }
  // The own ones, as they are now.
  Particle* mine() { return mine_; }
  Block own() const { return own_; }

  // The forces of particle `source` on all own particles are added to what was added before.
  void add_forces(long source);
  // Moves the own particles by one time step. The forces are zero again.
  void move();
  // Of own particle `i`: the forces of all() on it, and its movement. Nothing is written to all().
  void update(long i);

  // Hash of the own particles' bits. The sum over ranks, modulo 2^64, does not depend on how the
  // particles are split.
  uint64_t hash() const;
  // Sum of mass times speed in direction `axis`, own particles.
  double momentum(int axis) const;

 private:
  void keep_positions();

  long n_, thin_;
  Block own_;
  bool apart_;
  Particle* all_;
  Particle* mine_ = nullptr;
  // Of the own particles, one array a coordinate, for add_forces.
  std::vector<double> at_[3], pull_[3];
};

}  // namespace nbody
