#include "m3/matrix.h"

#include <algorithm>

#include "common/hash.h"

namespace m3 {
namespace {

double weight(long column) { return static_cast<double>(column % 61 + 1); }

// Whole numbers from -8 to 7.
double small_number(uint64_t key) {
  return static_cast<double>(apps::mix(apps::mix(key + 1)) >> 60) - 8;
}

}  // namespace

Slice slice_of(long n, int part, int parts) {
  const long share = n / parts;
  const long longer = n % parts;
  return {part * share + std::min<long>(part, longer), share + (part < longer ? 1 : 0)};
}

void fill_b(double* b, long n, long thin) {
  const long kept = kept_rows(n, thin);
  for (long i = 0; i < n * kept; ++i) b[i] = small_number(static_cast<uint64_t>(i));
}

void fill_row(double* row, long n, long key) {
  const uint64_t seed = static_cast<uint64_t>(key + 1) << 24;
  for (long j = 0; j < n; ++j) row[j] = small_number(seed + static_cast<uint64_t>(j));
}

void multiply_row(const double* a, const double* b, double* c, long n, long thin) {
  const long kept = kept_rows(n, thin);
  for (long j = 0; j < n; ++j) {
    const double* const column = b + j * kept;
    double sums[4] = {0, 0, 0, 0};  // side by side: one sum would wait for itself
    long k = 0;
    for (; k + 4 <= kept; k += 4) {
      for (long lane = 0; lane < 4; ++lane) sums[lane] += a[(k + lane) * thin] * column[k + lane];
    }
    for (; k < kept; ++k) sums[0] += a[k * thin] * column[k];
    c[j] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

void weigh_b(const double* b, double* w, long n, long thin) {
  const long kept = kept_rows(n, thin);
  std::fill(w, w + n, 0.0);
  for (long j = 0; j < n; ++j) {
    for (long k = 0; k < kept; ++k) w[k * thin] += weight(j) * b[j * kept + k];
  }
}

double expected_sum(const double* a, const double* w, long n) {
  double sum = 0;
  for (long k = 0; k < n; ++k) sum += a[k] * w[k];
  return sum;
}

double weighted_sum(const double* c, long n) {
  double sum = 0;
  for (long j = 0; j < n; ++j) sum += weight(j) * c[j];
  return sum;
}

}  // namespace m3
