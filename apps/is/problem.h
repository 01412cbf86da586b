// The problems of NAS IS, and the ranks that NAS publishes for five of the keys (NPB 2 and 3,
// partial verification of IS). Plain data.
#pragma once

#include <algorithm>

namespace is {

constexpr int kTests = 5;
constexpr long kChanges = 10;  // iterations that change two keys first; NAS runs no more

// The key at `place` among all keys has this rank, plus or minus the iterations so far: some of the
// keys that they changed were put before it and some behind it.
struct Test {
  long place, rank;
  int sign;
  long offset;

  long rank_after(long iteration) const {
    return rank + sign * (std::min(iteration, kChanges) - offset);
  }
};

struct Problem {
  int keys_log2, most_log2, buckets_log2;  // keys are below 2^most_log2
  Test tests[kTests];

  long keys() const { return 1L << keys_log2; }
  long most() const { return 1L << most_log2; }
  long buckets() const { return 1L << buckets_log2; }
  long bucket_width() const { return most() / buckets(); }
};

// By class: S, W, A, B, C.
inline constexpr Problem kProblems[5] = {
    {16,
     11,
     9,
     {{48427, 0, +1, 0},
      {17148, 18, +1, 0},
      {23627, 346, +1, 0},
      {62548, 64917, -1, 0},
      {4431, 65463, -1, 0}}},
    {20,
     16,
     10,
     {{357773, 1249, +1, 2},
      {934767, 11698, +1, 2},
      {875723, 1039987, -1, 0},
      {898999, 1043896, -1, 0},
      {404505, 1048018, -1, 0}}},
    {23,
     19,
     10,
     {{2112377, 104, +1, 1},
      {662041, 17523, +1, 1},
      {5336171, 123928, +1, 1},
      {3642833, 8288932, -1, 1},
      {4250760, 8388264, -1, 1}}},
    {25,
     21,
     10,
     {{41869, 33422937, -1, 0},
      {812306, 10244, +1, 0},
      {5102857, 59149, +1, 0},
      {18232239, 33135281, -1, 0},
      {26860214, 99, +1, 0}}},
    {27,
     23,
     10,
     {{44172927, 61147, +1, 0},
      {72999161, 882988, +1, 0},
      {74326391, 266290, +1, 0},
      {129606274, 133997595, -1, 0},
      {21736814, 133525895, -1, 0}}},
};

}  // namespace is
