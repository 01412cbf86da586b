#include "ft/field.h"

#include <algorithm>
#include <cmath>

#include "common/hash.h"
#include "common/nas.h"

namespace ft {
namespace {

constexpr double kAlpha = 1e-6;
constexpr double kPi = 3.141592653589793;
constexpr long kProbes = 1024;

// By how much each wave of one dimension fades in a time step: waves beyond the middle run the
// other way.
std::vector<double> fading(long n) {
  std::vector<double> factors;
  for (long i = 0; i < n; ++i) {
    const double k = static_cast<double>(i < n / 2 ? i : i - n);
    factors.push_back(std::exp(-4 * kPi * kPi * kAlpha * k * k));
  }
  return factors;
}

uint64_t hash_point(uint64_t number, Complex c) {
  const double both[2] = {c.re, c.im};
  return apps::hash_numbers(apps::mix(number + 1), both, 2);
}

double square(Complex c) { return c.re * c.re + c.im * c.im; }

double sum_of_squares(const Complex* numbers, long count) {
  double sum = 0;
  for (long i = 0; i < count; ++i) sum += square(numbers[i]);
  return sum;
}

}  // namespace

Field::Field(Shape shape, long thin, int rank, int ranks)
    : shape_(shape),
      thin_(thin),
      kept_(shape.nx / thin),
      width_(shape.ny / ranks),
      depth_(shape.nz / ranks),
      first_y_(rank * width_),
      first_z_(rank * depth_),
      fft_x_(kept_),
      fft_y_(shape.ny),
      fft_z_(shape.nz),
      fading_{fading(kept_), fading(shape.ny), fading(shape.nz)} {
  const long longest = std::max({shape.nz, kept_ * depth_, shape.ny * depth_});
  waves_ = apps::make_array<Complex>(width_ * kept_ * shape.nz);
  sent_ = apps::make_array<Complex>(ranks * block());
  received_ = apps::make_array<Complex>(ranks * block());
  work_ = apps::make_array<Complex>(longest);
  spare_ = apps::make_array<Complex>(longest);
}

// NAS numbers the points of the initial field x by x, then y, then z; each takes two numbers.
template <class Use>
void Field::each_start(Use use) const {
  for (long z = 0; z < depth_; ++z) {
    for (long y = 0; y < shape_.ny; ++y) {
      const long before = ((first_z_ + z) * shape_.ny + y) * kept_;
      apps::NasRandom random(static_cast<uint64_t>(2 * before));
      for (long x = 0; x < kept_; ++x) {
        const double re = random.next();
        use(place(x, y) + z, Complex{re, random.next()});
      }
    }
  }
}

template <class Use>
void Field::each_probe(Use use) const {
  for (long j = 1; j <= kProbes; ++j) {
    const long z = 5 * j % shape_.nz - first_z_;
    if (z < 0 || z >= depth_) continue;
    use(j, received_[place(j % kept_, 3 * j % shape_.ny) + z]);
  }
}

void Field::begin_start() {
  // Between the points of a thinned problem there is nothing yet, but it travels as well.
  if (thin_ > 1) std::fill_n(received_.get(), shape_.ny * row_points(), Complex{0, 0});
  each_start([this](long at, Complex value) { received_[at] = value; });
  for (long y = 0; y < shape_.ny; ++y) along_x(y, Direction::forward);
  for (long x = 0; x < kept_; ++x) along_y(x, Direction::forward);
}

void Field::end_start() {
  for (long line = 0; line < lines(); ++line) {
    const long y = line / kept_, x = line % kept_;
    const Complex* from = sent_.get() + (y * shape_.nx + x * thin_) * depth_;
    for (long z = 0; z < shape_.nz; z += depth_, from += block()) {
      std::copy_n(from, depth_, work_.get() + z);
    }
    const Complex* const wave = fft_z_.run(Direction::forward, work_.get(), spare_.get(), 1);
    std::copy_n(wave, shape_.nz, waves_.get() + line * shape_.nz);
  }
}

void Field::fade(Complex* wave, long line) const {
  const long y = first_y_ + line / kept_, x = line % kept_;
  const double both = fading_[0][static_cast<size_t>(x)] * fading_[1][static_cast<size_t>(y)];
  for (long z = 0; z < shape_.nz; ++z) {
    const double factor = both * fading_[2][static_cast<size_t>(z)];
    wave[z].re *= factor;
    wave[z].im *= factor;
  }
}

void Field::send_line(long line, bool evolve) {
  Complex* const wave = waves_.get() + line * shape_.nz;
  if (evolve) fade(wave, line);
  std::copy_n(wave, shape_.nz, work_.get());
  const Complex* from = fft_z_.run(Direction::inverse, work_.get(), spare_.get(), 1);
  Complex* to = sent_.get() + line * thin_ * depth_;
  for (long z = 0; z < shape_.nz; z += depth_, from += depth_, to += block()) {
    for (long copy = 0; copy < thin_; ++copy) std::copy_n(from, depth_, to + copy * depth_);
  }
}

// `rows` rows of all z, `stride` numbers from one to the next.
void Field::transform(const Fft& fft, Direction direction, Complex* first, long rows, long stride) {
  for (long i = 0; i < rows; ++i) {
    std::copy_n(first + i * stride, depth_, work_.get() + i * depth_);
  }
  const Complex* const result = fft.run(direction, work_.get(), spare_.get(), depth_);
  for (long i = 0; i < rows; ++i) std::copy_n(result + i * depth_, depth_, first + i * stride);
}

void Field::along_x(long y, Direction direction) {
  Complex* const row = received_.get() + place(0, y);
  if (direction == Direction::inverse && thin_ > 1) look_at_copies(row);
  transform(fft_x_, direction, row, kept_, thin_ * depth_);
}

void Field::along_y(long x, Direction direction) {
  transform(fft_y_, direction, received_.get() + place(x, 0), shape_.ny, shape_.nx * depth_);
}

// A number of each, so that every page that was received is read.
void Field::look_at_copies(const Complex* row) {
  for (long x = 0; x < shape_.nx; ++x) {
    const Complex copy = row[x * depth_], original = row[x / thin_ * thin_ * depth_];
    if (copy.re != original.re || copy.im != original.im) ++wrong_copies_;
  }
}

Complex Field::sum_of_probes() const {
  Complex sum = {0, 0};
  each_probe([&sum](long, Complex c) {
    sum.re += c.re;
    sum.im += c.im;
  });
  const double points = static_cast<double>(problem_points());
  return {sum.re / points, sum.im / points};
}

uint64_t Field::hash_of_probes(uint64_t key) const {
  uint64_t sum = 0;
  each_probe(
      [&](long j, Complex c) { sum += hash_point(key * kProbes + static_cast<uint64_t>(j), c); });
  return sum;
}

uint64_t Field::hash() const {
  uint64_t sum = 0;
  for (long y = 0; y < shape_.ny; ++y) {
    for (long x = 0; x < kept_; ++x) {
      const Complex* const points = received_.get() + place(x, y);
      const long number = (y * kept_ + x) * shape_.nz + first_z_;
      for (long z = 0; z < depth_; ++z) {
        sum += hash_point(static_cast<uint64_t>(number + z), points[z]);
      }
    }
  }
  return sum;
}

// Sums of sums: one sum of millions of squares would lose most of the small ones' digits.
double Field::energy(bool waves) const {
  double sum = 0;
  for (long y = 0; y < (waves ? width_ : shape_.ny); ++y) {
    double plane = 0;
    for (long x = 0; x < kept_; ++x) {
      plane += waves ? sum_of_squares(waves_.get() + (y * kept_ + x) * shape_.nz, shape_.nz)
                     : sum_of_squares(received_.get() + place(x, y), depth_);
    }
    sum += plane;
  }
  return sum;
}

double Field::distance_to_start() const {
  const double points = static_cast<double>(problem_points());
  double largest = 0;
  each_start([&](long at, Complex start) {
    const Complex now = received_[at];
    const double off = square({now.re / points - start.re, now.im / points - start.im});
    if (!(off <= largest)) largest = off;
  });
  return std::sqrt(largest);
}

}  // namespace ft
