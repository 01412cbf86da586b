#include "nbody/particles.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/hash.h"

namespace nbody {
namespace {

constexpr double kStep = 1.0 / 1024;  // time
constexpr double kSoftening =
    1.0 / 1024;  // added to squared distances: nothing gets infinitely near

// Adding and taking away this number rounds to a multiple of 2^-40.
constexpr double kRounder = 1.5 * 4096;

// From 0 to 1, the same everywhere.
double random_number(uint64_t key) {
  return static_cast<double>(apps::mix(apps::mix(key + 1)) >> 11) * 0x1p-53;
}

}  // namespace

Block block_of(long n, int part, int parts) {
  const long share = n / parts;
  const long longer = n % parts;
  return {part * share + std::min<long>(part, longer), share + (part < longer ? 1 : 0)};
}

Particles::Particles(long n, Block own, long thin, bool apart)
    : n_(n),
      thin_(thin),
      own_(own),
      apart_(apart),
      all_(static_cast<Particle*>(std::malloc(static_cast<size_t>(n) * sizeof(Particle)))) {
  if (all_ == nullptr) return;
  const double mass = static_cast<double>(thin) / static_cast<double>(n);
  for (long i = 0; i < n; ++i) {
    // Opposite particles in turn, so that the whole does not drift away.
    const uint64_t key = static_cast<uint64_t>(i / (2 * thin) * thin + i % thin) * 4;
    const double side = i / thin % 2 == 0 ? 1 : -1;
    const double radius = 0.1 + 0.9 * random_number(key);
    const double angle = 6.283185307179586 * random_number(key + 1);
    const double speed = std::sqrt(radius);
    Particle& p = all_[i];
    p.mass = i % thin == 0 ? mass : 0;
    p.at[0] = side * radius * std::cos(angle);
    p.at[1] = side * radius * std::sin(angle);
    p.at[2] = side * 0.05 * (random_number(key + 2) - 0.5);
    p.speed[0] = -side * speed * std::sin(angle);
    p.speed[1] = side * speed * std::cos(angle);
    p.speed[2] = 0;
  }
  mine_ = all_ + own.first;
  if (apart_) {
    mine_ = static_cast<Particle*>(std::malloc(static_cast<size_t>(own.count) * sizeof(Particle)));
    if (mine_ == nullptr) return;
    std::copy(all_ + own.first, all_ + own.first + own.count, mine_);
  }
  for (int axis = 0; axis < 3; ++axis) {
    at_[axis].resize(static_cast<size_t>(own.count));
    pull_[axis].resize(static_cast<size_t>(own.count));
  }
  keep_positions();
}

Particles::~Particles() {
  if (apart_) std::free(mine_);
  std::free(all_);
}

void Particles::keep_positions() {
  for (int axis = 0; axis < 3; ++axis) {
    for (long i = 0; i < own_.count; ++i) {
      at_[axis][static_cast<size_t>(i)] = mine_[i].at[axis];
    }
    std::fill(pull_[axis].begin(), pull_[axis].end(), 0.0);
  }
}

void Particles::add_forces(long source) {
  const Particle s = all_[source];
  if (s.mass == 0) return;
  const double* const x = at_[0].data();
  const double* const y = at_[1].data();
  const double* const z = at_[2].data();
  double* __restrict const fx = pull_[0].data();
  double* __restrict const fy = pull_[1].data();
  double* __restrict const fz = pull_[2].data();
  for (long i = 0; i < own_.count; ++i) {
    const double dx = s.at[0] - x[i], dy = s.at[1] - y[i], dz = s.at[2] - z[i];
    const double squared = (dx * dx + dy * dy) + (dz * dz + kSoftening);
    const double strength = s.mass / (squared * std::sqrt(squared));
    fx[i] += (dx * strength + kRounder) - kRounder;
    fy[i] += (dy * strength + kRounder) - kRounder;
    fz[i] += (dz * strength + kRounder) - kRounder;
  }
}

void Particles::move() {
  for (long i = 0; i < own_.count; ++i) {
    Particle& p = mine_[i];
    for (int axis = 0; axis < 3; ++axis) {
      p.speed[axis] += kStep * pull_[axis][static_cast<size_t>(i)];
      p.at[axis] += kStep * p.speed[axis];
    }
  }
  keep_positions();
}

void Particles::update(long i) {
  const Particle& old = all_[own_.first + i];
  double pull[3] = {};
  for (long source = 0; source < n_; source += thin_) {
    const Particle& s = all_[source];
    const double dx = s.at[0] - old.at[0], dy = s.at[1] - old.at[1], dz = s.at[2] - old.at[2];
    const double squared = (dx * dx + dy * dy) + (dz * dz + kSoftening);
    const double strength = s.mass / (squared * std::sqrt(squared));
    pull[0] += (dx * strength + kRounder) - kRounder;
    pull[1] += (dy * strength + kRounder) - kRounder;
    pull[2] += (dz * strength + kRounder) - kRounder;
  }
  Particle& p = mine_[i];
  for (int axis = 0; axis < 3; ++axis) {
    p.speed[axis] += kStep * pull[axis];
    p.at[axis] += kStep * p.speed[axis];
  }
}

uint64_t Particles::hash() const {
  uint64_t sum = 0;
  for (long i = 0; i < own_.count; ++i) {
    const uint64_t key = apps::mix(static_cast<uint64_t>(own_.first + i) + 1);
    sum += apps::hash_numbers(key, &mine_[i].mass, 7);
  }
  return sum;
}

double Particles::momentum(int axis) const {
  double sum = 0;
  for (long i = 0; i < own_.count; ++i) {
    sum += mine_[i].mass * mine_[i].speed[axis];
  }
  return sum;
}

}  // namespace nbody
