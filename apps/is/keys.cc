#include "is/keys.h"

#include <algorithm>

#include "common/hash.h"
#include "common/nas.h"

namespace is {
namespace {

uint64_t hash_key(int key) { return apps::mix(apps::mix(static_cast<uint64_t>(key) + 1)); }

}  // namespace

Part part_of(long runs, int part, int parts) {
  const long share = runs / parts;
  const long longer = runs % parts;
  return {part * share + std::min<long>(part, longer), share + (part < longer ? 1 : 0)};
}

// NAS makes a key of the mean of four random numbers.
Keys::Keys(const Problem& problem, long thin, Part part)
    : problem_(problem),
      thin_(thin),
      part_(part),
      shift_(problem.most_log2 - problem.buckets_log2),
      keys_(apps::make_array<int>(part.runs)),
      sent_(apps::make_array<int>(part.runs * thin)),
      sizes_(static_cast<size_t>(problem.buckets())),
      next_(sizes_.size()) {
  if (!ok()) return;
  apps::NasRandom random(static_cast<uint64_t>(4 * part.first));
  for (long i = 0; i < part.runs; ++i) {
    uint64_t sum = 0;
    for (int number = 0; number < 4; ++number) sum += random.next_bits();
    keys_[i] = static_cast<int>(sum >> (48 - problem.most_log2));
  }
}

void Keys::change(long iteration) {
  if (part_.first != 0 || iteration > kChanges) return;
  keys_[iteration] = static_cast<int>(iteration);
  keys_[iteration + kChanges] = static_cast<int>(problem_.most() - iteration);
}

void Keys::start_counting() { std::fill(sizes_.begin(), sizes_.end(), 0); }

void Keys::count(long from, long count) {
  const int thin = static_cast<int>(thin_);
  for (long i = from; i < from + count; ++i) sizes_[bucket(keys_[i])] += thin;
}

void Keys::start_moving() {
  long next = 0;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    next_[i] = next;
    next += sizes_[i];
  }
}

void Keys::move(long from, long count) {
  for (long i = from; i < from + count; ++i) {
    const int key = keys_[i];
    long& next = next_[bucket(key)];
    std::fill_n(sent_.get() + next, thin_, key);
    next += thin_;
  }
}

int Keys::key_at(long place) const {
  const long run = place / thin_ - part_.first;
  return run >= 0 && run < part_.runs ? keys_[run] : 0;
}

uint64_t Keys::hash() const {
  uint64_t sum = 0;
  for (long i = 0; i < part_.runs; ++i) sum += static_cast<uint64_t>(thin_) * hash_key(keys_[i]);
  return sum;
}

bool Ranking::start(int least, int end, long below, long keys) {
  least_ = least;
  end_ = end;
  below_ = below;
  keys_ = keys;
  counts_.assign(static_cast<size_t>(end - least), 0);
  if (keys <= room_) return true;
  room_ = keys + keys / 64 + 4096;  // the next iterations' changes fit as well
  received_ = apps::make_array<int>(room_);
  return received_ != nullptr;
}

void Ranking::count(long from, long count) {
  const int thin = static_cast<int>(thin_);
  for (long i = from; i < from + count; i += thin_) {
    if (has(received_[i])) counts_[static_cast<size_t>(received_[i] - least_)] += thin;
  }
}

void Ranking::finish() {
  ends_.resize(counts_.size());
  int end = 0;
  for (size_t i = 0; i < counts_.size(); ++i) ends_[i] = end += counts_[i];
}

std::vector<int> Ranking::sorted() const {
  std::vector<int> places = ends_;
  std::vector<int> keys(static_cast<size_t>(keys_));
  for (long i = keys_ - 1; i >= 0; --i) {
    const int key = received_[i];
    keys[static_cast<size_t>(--places[static_cast<size_t>(key - least_)])] = key;
  }
  return keys;
}

uint64_t Ranking::hash_of(const std::vector<int>& sorted) const {
  uint64_t sum = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const uint64_t place = static_cast<uint64_t>(below_) + i;
    sum += apps::mix(apps::mix(place + 1) ^ static_cast<uint64_t>(sorted[i]));
  }
  return sum;
}

uint64_t Ranking::hash() const {
  uint64_t sum = 0;
  for (long i = 0; i < keys_; ++i) sum += hash_key(received_[i]);
  return sum;
}

long Ranking::strangers() const {
  long strangers = 0;
  for (long i = 0; i < keys_; ++i) {
    if (!has(received_[i]) || received_[i] != received_[i / thin_ * thin_]) ++strangers;
  }
  return strangers;
}

}  // namespace is
