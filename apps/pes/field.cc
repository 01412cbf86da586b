#include "pes/field.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/hash.h"

namespace pes {
namespace {

// A disc of uniform charge; place and radius in units of the side of the grid.
struct Disc {
  double x, y, radius, strength;
};

constexpr Disc discs[] = {
    {0.25, 0.30, 0.030, +0.30}, {0.50, 0.50, 0.045, -0.40}, {0.75, 0.30, 0.030, +0.40},
    {0.25, 0.72, 0.030, +0.40}, {0.75, 0.72, 0.030, -0.30}, {0.50, 0.16, 0.020, -0.25},
    {0.50, 0.84, 0.020, +0.25},
};

// The plain five-point sweep over one row, edges of the row excepted. Always the same order of
// additions, so the same bits everywhere.
void sweep(const double* __restrict up, const double* __restrict mid, const double* __restrict down,
           double* __restrict out, long n) {
  for (long j = 1; j < n - 1; ++j) {
    out[j] = 0.25 * ((up[j] + down[j]) + (mid[j - 1] + mid[j + 1]));
  }
}

}  // namespace

Field::Field(long n, long height, int part, int parts, Problem problem)
    : n_(n), height_(height), problem_(problem) {
  const long share = height / parts;
  const long longer = height % parts;
  rows_ = share + (part < longer ? 1 : 0);
  first_ = part * share + std::min<long>(part, longer);
  const size_t bytes = static_cast<size_t>(rows_ + 2) * static_cast<size_t>(n) * sizeof(double);
  now_ = static_cast<double*>(std::malloc(bytes));
  next_ = static_cast<double*>(std::malloc(bytes));
  if (ok()) fill(problem);
}

Field::~Field() {
  std::free(now_);
  std::free(next_);
}

double Field::exact(long global_row, long column) const {
  const double x = static_cast<double>(column) / static_cast<double>(n_ - 1);
  const double y = static_cast<double>(global_row) / static_cast<double>(height_ - 1);
  return 1 - x - y + 2 * x * y;
}

bool Field::is_boundary(long local) const {
  const long global = first_ + local - 1;
  return global == 0 || global == height_ - 1;
}

void Field::fill(Problem problem) {
  for (long local = 0; local <= rows_ + 1; ++local) {
    const long global = first_ + local - 1;
    double* const out = row(local);
    const bool ghost = local == 0 || local == rows_ + 1;
    for (long j = 0; j < n_; ++j) {
      const bool fixed = global == 0 || global == height_ - 1 || j == 0 || j == n_ - 1;
      const bool known = !ghost && (fixed || problem == Problem::charges);
      out[j] = known ? exact(global, j) : 0.0;
    }
  }
  std::memcpy(next_, now_,
              static_cast<size_t>(rows_ + 2) * static_cast<size_t>(n_) * sizeof(double));
}

void Field::add_charges(long local, double* out) const {
  const double last = static_cast<double>(n_ - 1);
  const double y = static_cast<double>(first_ + local - 1);
  for (const Disc& d : discs) {
    const double radius = d.radius * last;
    const double dy = y - d.y * last;
    if (std::fabs(dy) > radius) continue;
    const double half = std::sqrt(radius * radius - dy * dy);
    const long from = std::max(1L, static_cast<long>(std::ceil(d.x * last - half)));
    const long to = std::min(n_ - 2, static_cast<long>(std::floor(d.x * last + half)));
    // h^2 f / 4 with f chosen so that the picture does not depend on n.
    const double gain = d.strength / (radius * radius);
    for (long j = from; j <= to; ++j) out[j] += gain;
  }
}

void Field::update(long local) {
  if (is_boundary(local)) return;
  double* const out = next_ + local * n_;
  sweep(row(local - 1), row(local), row(local + 1), out, n_);
  if (problem_ == Problem::charges) add_charges(local, out);
}

void Field::step() { std::swap(now_, next_); }

double Field::residual() const {
  double* const line = static_cast<double*>(std::malloc(static_cast<size_t>(n_) * sizeof(double)));
  if (line == nullptr) return NAN;
  double largest = 0;
  for (long local = 1; local <= rows_; ++local) {
    if (is_boundary(local)) continue;
    sweep(row(local - 1), row(local), row(local + 1), line, n_);
    if (problem_ == Problem::charges) add_charges(local, line);
    for (long j = 1; j < n_ - 1; ++j) {
      const double change = std::fabs(line[j] - row(local)[j]);
      // Written so that a NaN in the field ends up in the result.
      if (!(change <= largest)) largest = change;
      if (std::isnan(largest)) break;
    }
    if (std::isnan(largest)) break;
  }
  std::free(line);
  return largest;
}

double Field::error() const {
  double largest = 0;
  for (long local = 1; local <= rows_; ++local) {
    for (long j = 0; j < n_; ++j) {
      const double off = std::fabs(row(local)[j] - exact(first_ + local - 1, j));
      if (!(off <= largest)) largest = off;
      if (std::isnan(largest)) return largest;
    }
  }
  return largest;
}

uint64_t Field::hash() const {
  uint64_t sum = 0;
  for (long local = 1; local <= rows_; ++local) {
    sum += apps::hash_numbers(apps::mix(static_cast<uint64_t>(first_ + local)), row(local), n_);
  }
  return sum;
}

}  // namespace pes
