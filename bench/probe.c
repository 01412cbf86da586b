// The cache-line probe by itself: two threads on cores 0 and 1 pass a line to and fro. Prints the
// one-way time in ns. run.py calls it before and after each run of a contestant.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { bursts = 40, trips = 50 };

static _Alignas(128) atomic_uint ping;
static _Alignas(128) atomic_uint pong;

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) perror("probe: sched_setaffinity");
}

static void await(atomic_uint* line, unsigned value) {
  for (unsigned spins = 1; atomic_load_explicit(line, memory_order_acquire) != value; spins++)
    if (spins % (1u << 16) == 0) sched_yield();
}

static void* answer(void* unused) {
  pin(1);
  for (unsigned round = 1; round <= bursts * trips; round++) {
    await(&ping, round);
    atomic_store_explicit(&pong, round, memory_order_release);
  }
  return unused;
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(void) {
  pthread_t other;
  double burst[bursts];
  pin(0);
  if (pthread_create(&other, NULL, answer, NULL) != 0) return 1;
  unsigned round = 0;
  for (int b = 0; b < bursts; b++) {
    double start = now_ns();
    for (int i = 0; i < trips; i++) {
      atomic_store_explicit(&ping, ++round, memory_order_release);
      await(&pong, round);
    }
    burst[b] = (now_ns() - start) / (2 * trips);
  }
  pthread_join(other, NULL);
  qsort(burst, bursts, sizeof(double), ascending);
  printf("%.1f\n", burst[bursts / 2]);
  return 0;
}
