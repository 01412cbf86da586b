#include "objects/grid.h"

#include <cstring>
#include <new>

#include "base/heap.h"

namespace headway::objects {
namespace {

size_t bytes_of(int dimensions) { return sizeof(Grid) + 2 * size_t(dimensions) * sizeof(int); }

// Is value <= bound to the power of `count`?
bool fits_into(int64_t value, int64_t bound, int count) {
  int64_t power = 1;
  for (int i = 0; i < count && power < value; ++i) power *= bound;
  return value <= power;
}

int largest_prime_of(int number) {
  int largest = 1;
  for (int prime = 2; prime <= number / prime; ++prime) {
    for (; number % prime == 0; number /= prime) largest = prime;
  }
  return number > 1 ? number : largest;
}

// Splits `number` into `count` factors of at most `bound`, the smallest possible one first. False:
// it cannot be done.
bool split_up(int number, int bound, int count, int* factors) {
  if (count == 1) {
    factors[0] = number;
    return number <= bound;
  }
  if (!fits_into(number, bound, count)) return false;
  // The first factor is the largest, so it is no less than the factor that has the largest prime.
  int first = largest_prime_of(number);
  while (!fits_into(number, first, count)) ++first;
  for (int factor = first; factor <= bound && factor <= number; ++factor) {
    if (number % factor != 0) continue;
    factors[0] = factor;
    if (split_up(number / factor, factor, count - 1, factors + 1)) return true;
  }
  return false;
}

}  // namespace

Grid* Grid::make(int dimensions, const int* lengths, const int* periods) {
  void* memory = base::heap_allocate(bytes_of(dimensions));
  if (!memory) return nullptr;
  auto* made = new (memory) Grid;
  made->dimensions_ = dimensions;
  for (int i = 0; i < dimensions; ++i) {
    made->lengths()[i] = lengths[i];
    made->lengths()[dimensions + i] = periods[i] != 0;
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
  // An int has at most 30 prime factors: with more dimensions the others are 1.
  int factors[31];
  const int count = open < 31 ? open : 31;
  if (!split_up(rest, rest, count, factors)) return false;
  for (int i = 0, next = 0; i < dimensions; ++i) {
    if (lengths[i] != 0) continue;
    lengths[i] = next < count ? factors[next] : 1;
    ++next;
  }
  return true;
}

}  // namespace headway::objects
