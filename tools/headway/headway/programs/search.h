// How much of a communication a computation can hide: the search of the overlap and progress paper
// (section 6, equation 4), with its open ends settled. Knows no MPI, so that it can be tested on
// curves of which the answer is known (tests/tools/definitions_test.py).
//   l0: communication time without computation. c: computation between the call and its wait. l:
//   time with it. c grows in steps of a tenth of l0 until l exceeds 1.1 l0; then the end is
//   bisected between the last c below and the first above; the last c below counts:
//     overlap = (c - (l - l0)) / l0                       (equation 4)
//   Where l never exceeds 1.1 l0 the search ends at c = l0, and the overlap is equation 4 there.
#pragma once

enum { overlap_steps = 10, overlap_halvings = 4 };

struct Overlap {
  double l0, c, l, overlap;
  double stop_c, stop_l;  // the nearest that exceeded; 0 if none did
  int steps;              // tenths that did not exceed
};

// Measures l with a computation of c. `sure`: with twice the care, since other programs' time
// slices must not end a search.
typedef double (*OverlapStep)(void* with, double c, int sure);

static inline int overlap_exceeds(double l, double l0) { return l > 1.1 * l0; }

static inline struct Overlap find_overlap(OverlapStep step, void* with, double l0) {
  struct Overlap f = {.l0 = l0, .l = l0};
  for (int m = 1; m <= overlap_steps && f.stop_c == 0; m++) {
    double c = l0 * m / overlap_steps;
    double l = step(with, c, 0);
    if (overlap_exceeds(l, l0)) l = step(with, c, 1);
    if (overlap_exceeds(l, l0)) {
      f.stop_c = c;
      f.stop_l = l;
    } else {
      f.c = c;
      f.l = l;
      f.steps = m;
    }
  }
  for (int i = 0; i < overlap_halvings && f.stop_c > 0; i++) {
    double c = (f.c + f.stop_c) / 2;
    double l = step(with, c, 1);
    if (overlap_exceeds(l, l0)) {
      f.stop_c = c;
      f.stop_l = l;
    } else {
      f.c = c;
      f.l = l;
    }
  }
  if (l0 > 0) f.overlap = (f.c - (f.l - l0)) / l0;
  return f;
}
