#include "ft/fft.h"

#include <cmath>
#include <utility>

namespace ft {
namespace {

constexpr double kTurn = 6.283185307179586;

// Sums and turned differences of two runs of numbers.
void butterfly(const Complex* __restrict a, const Complex* __restrict b, Complex root,
               Complex* __restrict sums, Complex* __restrict differences, long count) {
  for (long i = 0; i < count; ++i) {
    const double re = a[i].re - b[i].re, im = a[i].im - b[i].im;
    sums[i].re = a[i].re + b[i].re;
    sums[i].im = a[i].im + b[i].im;
    differences[i].re = re * root.re - im * root.im;
    differences[i].im = re * root.im + im * root.re;
  }
}

}  // namespace

Fft::Fft(long n) : n_(n) {
  for (long k = 0; k < n / 2; ++k) {
    const double angle = kTurn * static_cast<double>(k) / static_cast<double>(n);
    roots_.push_back({std::cos(angle), -std::sin(angle)});
  }
}

Complex* Fft::run(Direction direction, Complex* data, Complex* spare, long lanes) const {
  const double side = direction == Direction::forward ? 1 : -1;
  // Each pass halves the transforms that are left and doubles how many numbers lie side by side.
  long together = lanes;
  for (long half = n_ / 2; half >= 1; half /= 2) {
    const long turn = n_ / 2 / half;
    for (long k = 0; k < half; ++k) {
      const Complex root = {roots_[static_cast<size_t>(k * turn)].re,
                            side * roots_[static_cast<size_t>(k * turn)].im};
      Complex* const out = spare + 2 * k * together;
      butterfly(data + k * together, data + (k + half) * together, root, out, out + together,
                together);
    }
    std::swap(data, spare);
    together *= 2;
  }
  return data;
}

}  // namespace ft
