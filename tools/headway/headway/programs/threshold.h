// From which size on something is so, such as that a call blocks: the search of the non-blocking
// paper's kernel. Knows no MPI, so that it can be tested on answers that are known
// (tests/tools/definitions_test.py).
// Doubled until one size blocks, then bisected by ratio. A wrong answer on the way would lead
// astray: the bracket is asked again before and behind the bisection. What does not hold is left
// in the direction in which the truth must lie. An answer in doubt counts as it leans, but what
// rests on one is not held: the size is then not known.
#pragma once

#include <math.h>
#include <stddef.h>

// An answer: blocks or not; in_doubt beside it: nothing could be asked, or the runs disagree.
enum { answer_blocks = 1, answer_in_doubt = 2 };
typedef int (*ThresholdAsk)(void* with, size_t bytes);

// Between a size that does not block and one that does; 0: none is known.
struct Threshold {
  ThresholdAsk ask;
  void* with;
  size_t most;
  double within;
  size_t below, above;
  int doubts;  // of the answers that the bracket rests on
  int held;
};

static inline int threshold_asks(struct Threshold* t, size_t bytes) {
  int answer = t->ask(t->with, bytes);
  if (answer & answer_in_doubt) t->doubts++;
  return answer & answer_blocks;
}

// Two answers of three.
static inline int threshold_asks_again(struct Threshold* t, size_t bytes, int before) {
  int now = threshold_asks(t, bytes);
  return now == before ? now : threshold_asks(t, bytes);
}

// Upwards by doubling, from a size that does not block; the largest one is always asked.
static inline void threshold_go_up(struct Threshold* t) {
  t->above = 0;
  while (t->below < t->most && !t->above) {
    size_t bytes = t->below < t->most / 2 ? t->below * 2 : t->most;
    if (threshold_asks(t, bytes) && threshold_asks_again(t, bytes, 1))
      t->above = bytes;
    else
      t->below = bytes;
  }
}

// Downwards by halves, from a size that blocks.
static inline void threshold_go_down(struct Threshold* t) {
  t->below = 0;
  for (size_t bytes = t->above / 2; bytes && !t->below; bytes /= 2) {
    if (!threshold_asks(t, bytes) && !threshold_asks_again(t, bytes, 0))
      t->below = bytes;
    else
      t->above = bytes;
  }
}

static inline void threshold_bisect(struct Threshold* t) {
  while ((double)t->above > (double)t->below * (1 + t->within)) {
    size_t middle = (size_t)((double)t->below * sqrt((double)t->above / (double)t->below));
    if (middle <= t->below || middle >= t->above) return;
    if (threshold_asks(t, middle))
      t->above = middle;
    else
      t->below = middle;
  }
}

// Asks both ends again, a little outside of what is known; then nothing else counts.
static inline int threshold_holds(struct Threshold* t, double within) {
  size_t less = (size_t)((double)t->below / (1 + within));
  size_t more = (size_t)((double)t->above * (1 + within));
  if (more > t->most) more = t->above;
  t->doubts = 0;
  if (less && threshold_asks(t, less) && threshold_asks_again(t, less, 1)) {
    t->above = less;
    threshold_go_down(t);
    return 0;
  }
  if (!threshold_asks(t, more) && !threshold_asks_again(t, more, 0)) {
    t->below = more;
    threshold_go_up(t);
    return 0;
  }
  return !t->doubts;
}

// The smallest size that blocks, from `least` on, or below it where that blocks; 0 if none does, or
// if it is not held.
static inline size_t find_threshold(struct Threshold* t, size_t least) {
  t->below = t->above = 0;
  t->doubts = t->held = 0;
  if (threshold_asks(t, least) && threshold_asks_again(t, least, 1)) {
    t->above = least;
    threshold_go_down(t);
  } else {
    t->below = least;
    threshold_go_up(t);
  }
  if (t->above && t->below) threshold_holds(t, 0);
  for (int again = 0; !t->held && again < 4; again++) {
    if (t->above && t->below) {
      threshold_bisect(t);
      t->held = threshold_holds(t, t->within);
    } else {
      t->held = !t->doubts;
    }
  }
  return t->held ? t->above : 0;
}
