// Fast Fourier transform of one dimension, many side by side: Stockham's form, radix 2, which needs
// no reordering but a second array. Pure but for its table. Thread: any. Owns the table.
#pragma once

#include <vector>

namespace ft {

struct Complex {
  double re, im;
};

enum class Direction {
  forward,  // exponent with a minus
  inverse   // with a plus; nothing is divided by the length
};

class Fft {
 public:
  // Of n numbers, a power of two.
  explicit Fft(long n);

  // `data`: n rows of `lanes` numbers; lane by lane they are transformed. Returns where the result
  // is: in `data` or in `spare`, which is as long. What the other one holds is of no use.
  Complex* run(Direction direction, Complex* data, Complex* spare, long lanes) const;

 private:
  const long n_;
  std::vector<Complex> roots_;  // exp(-2 pi i k / n), k below n / 2
};

}  // namespace ft
