#include "objects/grid.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/heap.h"

namespace headway::objects {
namespace {

size_t bytes_of(int dimensions) { return sizeof(Grid) + 2 * size_t(dimensions) * sizeof(int); }

// An int has at most 1,600 divisors (2095133040 has), and at most 30 prime factors.
constexpr int most_divisors = 1600;
constexpr int most_factors = 30;

// The divisors of a number, rising.
struct Divisors {
  int values[most_divisors];
  int count = 0;

  explicit Divisors(int number) {
    values[count++] = 1;
    for (int64_t prime = 2; number > 1; ++prime) {
      if (prime > number / prime) prime = number;  // what is left is one
      const int before = count;
      for (int64_t power = prime; number % prime == 0; power *= prime) {
        for (int i = 0; i < before; ++i) values[count++] = int(values[i] * power);
        number = int(number / prime);
      }
    }
    std::sort(values, values + count);
  }
  // Where the first one stands that is no less than `bound`.
  int at_least(int64_t bound) const {
    return int(std::lower_bound(begin(), end(), bound) - begin());
  }
  const int* begin() const { return values; }
  const int* end() const { return values + count; }
};

// Is value <= base to the power of `count`?
bool fits_into(int64_t value, int64_t base, int count) {
  int64_t power = 1;
  for (int i = 0; i < count && power < value; ++i) {
    if (base == 1) return value <= 1;
    power *= base;
  }
  return value <= power;
}

// The least whole number whose power of `count` is no less than `value`.
int root_above(int64_t value, int count) {
  int64_t low = 1, high = value;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (fits_into(value, middle, count)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return int(low);
}

// Looks for the factors whose range is the smallest, and among those for the smallest largest one.
class Splitter {
 public:
  Splitter(int number, int count) : divisors_(number), number_(number), count_(count) {
    failed_ = static_cast<int*>(base::heap_allocate(failed_bytes()));
  }
  ~Splitter() { base::heap_free(failed_, failed_bytes()); }
  Splitter(const Splitter&) = delete;
  Splitter& operator=(const Splitter&) = delete;

  // Falling; count >= 1.
  void split(int* factors) {
    int best = INT32_MAX;
    int found[most_factors + 1];
    // The least factor is no more than the root. With a smaller one the largest factor, which is no
    // less than the root of the rest, only grows: once even that range is too large, all are. The
    // same range with a smaller least factor has a smaller largest one, so it is preferred.
    for (int i = divisors_.count - 1; i >= 0; --i) {
      const int least = divisors_.values[i];
      if (!is_power_within(least, number_, count_)) continue;
      const int rest = number_ / least;
      const int largest = count_ == 1 ? least : root_above(rest, count_ - 1);
      if (largest - least > best) break;
      const int bound = best <= INT32_MAX - least ? least + best : INT32_MAX;
      found[count_ - 1] = least;
      if (failed_) memset(failed_, 0, failed_bytes());
      if (!fill(rest, least, bound, count_ - 1, found)) continue;
      best = found[0] - least;
      std::copy(found, found + count_, factors);
    }
  }

 private:
  // Is base to the power of `count` <= value?
  static bool is_power_within(int64_t base, int64_t value, int count) {
    for (int i = 0; i < count && base > 1; ++i) {
      value /= base;
      if (value == 0) return false;
    }
    return true;
  }

  // Splits `number` into `count` factors from `least` to `bound`, the smallest possible one first.
  bool fill(int number, int least, int bound, int count, int* factors) {
    if (count == 0) return number == 1;
    if (count == 1) {
      factors[0] = number;
      return number >= least && number <= bound;
    }
    if (!is_power_within(least, number, count) || !fits_into(number, bound, count)) return false;
    int* failed =
        failed_ ? &failed_[count * divisors_.count + divisors_.at_least(number)] : nullptr;
    if (failed && bound <= *failed) return false;
    for (int i = divisors_.at_least(root_above(number, count)); i < divisors_.count; ++i) {
      const int factor = divisors_.values[i];
      if (factor > bound || factor > number) break;
      if (number % factor != 0) continue;
      if (!is_power_within(least, number / factor, count - 1)) break;
      factors[0] = factor;
      if (fill(number / factor, least, factor, count - 1, factors + 1)) return true;
    }
    if (failed) *failed = bound;
    return false;
  }

  size_t failed_bytes() const { return size_t(count_) * size_t(divisors_.count) * sizeof *failed_; }

  const Divisors divisors_;
  const int number_;
  const int count_;
  // For a count and a divisor: up to which bound it has no split. What failed once is not tried
  // again: there are few pairs of the two, and many ways to come to each. Null without memory,
  // which costs time only.
  int* failed_ = nullptr;
};

}  // namespace

Grid* Grid::make(int dimensions, const int* lengths, const int* periods) {
  void* memory = base::heap_allocate(bytes_of(dimensions));
  if (!memory) return nullptr;
  auto* made = new (memory) Grid;
  made->dimensions_ = dimensions;
  for (int i = 0; i < dimensions; ++i) {
    made->lengths()[i] = lengths[i];
    made->lengths()[dimensions + i] = periods[i] != 0;
    HEADWAY_CHECK(lengths[i] > 0 && made->volume_ <= INT32_MAX / lengths[i]);
    made->volume_ *= lengths[i];
  }
  return made;
}

void Grid::release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  base::heap_free(this, bytes_of(dimensions_));
}

void Grid::find_coordinates(int rank, int* coordinates) const {
  for (int i = dimensions_ - 1; i >= 0; --i) {
    coordinates[i] = rank % length(i);
    rank /= length(i);
  }
}

int Grid::find_rank(const int* coordinates) const {
  int rank = 0;
  for (int i = 0; i < dimensions_; ++i) {
    int at = coordinates[i];
    if (at < 0 || at >= length(i)) {
      if (!periodic(i)) return -1;
      at %= length(i);
      if (at < 0) at += length(i);
    }
    rank = rank * length(i) + at;
  }
  return rank;
}

int Grid::find_neighbour(int rank, int dimension, int64_t distance) const {
  int stride = 1;  // ranks between two places that are next to one another in this dimension
  for (int i = dimension + 1; i < dimensions_; ++i) stride *= length(i);
  const int64_t here = rank / stride % length(dimension);
  int64_t there = here + distance;
  if (there < 0 || there >= length(dimension)) {
    if (!periodic(dimension)) return -1;
    there %= length(dimension);
    if (there < 0) there += length(dimension);
  }
  return rank + int(there - here) * stride;
}

int volume_of(int dimensions, const int* lengths) {
  int64_t volume = 1;
  for (int i = 0; i < dimensions; ++i) {
    if (lengths[i] < 1) return -1;
    volume *= lengths[i];
    if (volume > INT32_MAX) return -1;
  }
  return int(volume);
}

bool balance(int places, int dimensions, int* lengths) {
  int64_t given = 1;
  int open = 0;
  for (int i = 0; i < dimensions; ++i) {
    if (lengths[i] < 0) return false;
    if (lengths[i] == 0) {
      ++open;
    } else {
      given *= lengths[i];
      if (given > places) return false;
    }
  }
  if (places < 1 || places % given != 0) return false;
  const int rest = places / int(given);
  if (open == 0) return rest == 1;
  // With more dimensions than an int has prime factors the others are 1.
  int factors[most_factors + 1];
  const int count = open <= most_factors ? open : most_factors + 1;
  Splitter(rest, count).split(factors);
  for (int i = 0, next = 0; i < dimensions; ++i) {
    if (lengths[i] != 0) continue;
    lengths[i] = next < count ? factors[next] : 1;
    ++next;
  }
  return true;
}

}  // namespace headway::objects
