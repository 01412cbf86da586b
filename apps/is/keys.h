// The keys of is: those a rank begins with, and those that it ranks. Neither class knows of MPI.
// Thread: main. Each owns its arrays.
//
// In a thinned problem keys come in runs of `thin` equal ones: a run is looked at once, but all its
// keys are written and travel. Numbers of keys always count all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "common/array.h"
#include "is/problem.h"

namespace is {

// The consecutive runs of one rank.
struct Part {
  long first, runs;
};

Part part_of(long runs, int part, int parts);

// A rank's own keys, and the same keys bucket by bucket, as they are sent.
class Keys {
 public:
  Keys(const Problem& problem, long thin, Part part);

  bool ok() const { return keys_ && sent_; }
  long runs() const { return part_.runs; }

  // What NAS changes before an iteration: two runs of the rank that has the first ones.
  void change(long iteration);

  // One pass counts how many keys each bucket gets; after start_moving() another one writes them
  // there. Runs from `from`, as many as `count`.
  void start_counting();
  void count(long from, long count);
  void start_moving();
  void move(long from, long count);

  const std::vector<int>& bucket_sizes() const { return sizes_; }
  const int* sent() const { return sent_.get(); }

  // The key at this place among the keys of all ranks, or 0 if it is another rank's.
  int key_at(long place) const;
  // Of all own keys, whatever their order.
  uint64_t hash() const;

 private:
  size_t bucket(int key) const { return static_cast<size_t>(key >> shift_); }

  const Problem& problem_;
  const long thin_;
  const Part part_;
  const int shift_;        // from a key to its bucket
  apps::Array<int> keys_;  // one of each run
  apps::Array<int> sent_;
  std::vector<int> sizes_;
  std::vector<long> next_;  // where each bucket's next run goes
};

// The keys of some consecutive buckets, from all ranks, and how many there are of each.
class Ranking {
 public:
  explicit Ranking(long thin) : thin_(thin) {}

  // Keys from `least` to below `end` are this rank's now; `below` keys of all ranks are smaller,
  // and `keys` will come. False: no memory. The array of the last time stays if it is long enough.
  bool start(int least, int end, long below, long keys);
  int* received() { return received_.get(); }

  // `count` of the keys received, from `from`.
  void count(long from, long count);
  // Each key's rank is known now.
  void finish();

  bool has(int key) const { return key >= least_ && key < end_; }
  // How many of all ranks' keys are smaller.
  long rank_of(int key) const {
    return below_ + ends_[static_cast<size_t>(key - least_)] -
           counts_[static_cast<size_t>(key - least_)];
  }

  // After finish(), if there are no strangers: all own keys at the places that their ranks say.
  std::vector<int> sorted() const;
  // Hash of sorted keys and their places. The sum over ranks is the same for any number of ranks.
  uint64_t hash_of(const std::vector<int>& sorted) const;
  // Of all keys received, whatever their order.
  uint64_t hash() const;
  // Keys that are not in a run of equal ones, or not this rank's at all: they were not counted.
  long strangers() const;

 private:
  const long thin_;
  int least_ = 0, end_ = 0;
  long below_ = 0, keys_ = 0, room_ = 0;
  apps::Array<int> received_;
  std::vector<int> counts_, ends_;  // of each key, and of it and all smaller ones of this rank
};

}  // namespace is
