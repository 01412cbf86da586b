// What every benchmark program shares: clock, pinning, the cache-line probe between two ranks, a
// calibrated computation, JSON output. Plain C and plain MPI, so that the same source is compiled
// by each contestant's own wrapper. One thread a rank; everything here is owned by that thread.
// The page shared between the two ranks (--page FILE) belongs to the benchmark, not to the MPI: it
// carries the probe only, so a probe looks the same whichever library is measured.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { cache_line = 64, probe_bursts = 20, probe_trips = 50, max_sizes = 64, max_samples = 4096 };

// ---- clock ---------------------------------------------------------------------------------
static inline double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static inline void fail(const char* what) {
  fprintf(stderr, "benchmark: %s\n", what);
  fflush(stderr);
  _exit(3);
}

// ---- statistics ----------------------------------------------------------------------------
static inline int compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

// Median; sorts `v` in place.
static inline double median(double* v, int n) {
  if (n < 1) fail("median of nothing");
  qsort(v, (size_t)n, sizeof(double), compare_doubles);
  return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

// ---- arguments: --name value ---------------------------------------------------------------
static inline const char* arg_text(int argc, char** argv, const char* name, const char* fallback) {
  for (int i = 1; i + 1 < argc; i++)
    if (strcmp(argv[i], name) == 0) return argv[i + 1];
  return fallback;
}

static inline double arg_number(int argc, char** argv, const char* name, double fallback) {
  const char* text = arg_text(argc, argv, name, NULL);
  return text ? atof(text) : fallback;
}

// "--sizes 1,1024,65536" into `out`; returns how many.
static inline int arg_sizes(int argc, char** argv, const char* fallback, size_t* out) {
  const char* text = arg_text(argc, argv, "--sizes", fallback);
  int n = 0;
  while (*text && n < max_sizes) {
    char* end;
    out[n] = strtoull(text, &end, 10);
    if (end == text) fail("--sizes wants numbers separated by commas");
    n++;
    text = *end == ',' ? end + 1 : end;
  }
  return n;
}

// ---- pinning -------------------------------------------------------------------------------
// BENCH_CORES, where it is set, lists the cores that stand for 0, 1 and so on: some of each NUMA
// node. Those it does not list stand for themselves, as far as there are so many.
static inline int core_called(int place) {
  const char* text = getenv("BENCH_CORES");
  for (int i = 0; text && *text; i++) {
    char* end;
    int core = (int)strtol(text, &end, 10);
    if (end == text) fail("BENCH_CORES wants numbers separated by commas");
    if (i == place) return core;
    text = *end == ',' ? end + 1 : end;
  }
  return (int)(place % sysconf(_SC_NPROCESSORS_ONLN));
}

static inline void pin_to_core(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core_called(core), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) perror("benchmark: sched_setaffinity");
}

// By the launcher's variables; -1 if it has none.
static inline int rank_before_init(void) {
  static const char* const names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                      "HEADWAY_RANK"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char* text = getenv(names[i]);
    if (text && *text) return atoi(text);
  }
  return -1;
}

// The same for every contestant: rank r goes to core r. Before MPI_Init, so that threads which the
// library starts there inherit it, as they would under a launcher that binds; afterwards once more
// by the true rank.
static inline void pin_before_init(void) {
  int rank = rank_before_init();
  if (rank >= 0) pin_to_core(rank);
}

// ---- the probe -----------------------------------------------------------------------------
// Two lines, one written by each rank. A burst is 50 round trips; the median burst is the answer,
// so a burst hit by preemption does not count.
struct ProbePage {
  _Alignas(128) atomic_uint ping;
  _Alignas(128) atomic_uint pong;
};

static struct ProbePage* probe_page;
static unsigned probe_round;

static inline void probe_open(int ranks, const char* path) {
  if (!path || ranks != 2) return;  // the sample is then tagged "unknown"
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) fail("cannot open the file named by --page");
  void* p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (p == MAP_FAILED) fail("cannot map the file named by --page");
  probe_page = p;
}

static inline void probe_await(atomic_uint* line, unsigned value) {
  double end = 0;
  for (unsigned spins = 1;; spins++) {
    if (atomic_load_explicit(line, memory_order_acquire) == value) return;
    if (spins % (1u << 16) == 0) {
      double t = now_us();
      if (end == 0) end = t + 60e6;
      if (t > end) fail("the other rank did not come to the probe within 60 s");
      sched_yield();
    }
  }
}

// One-way time of a cache line between the two ranks, ns; both call it. Only rank 0's answer
// counts. 0 when there is no page.
static inline double probe_line(int rank) {
  double bursts[probe_bursts];
  if (!probe_page) return 0;
  for (int b = 0; b < probe_bursts; b++) {
    double start = now_us();
    for (int i = 0; i < probe_trips; i++) {
      probe_round++;
      if (rank == 0) {
        atomic_store_explicit(&probe_page->ping, probe_round, memory_order_release);
        probe_await(&probe_page->pong, probe_round);
      } else {
        probe_await(&probe_page->ping, probe_round);
        atomic_store_explicit(&probe_page->pong, probe_round, memory_order_release);
      }
    }
    bursts[b] = (now_us() - start) * 1e3 / (2 * probe_trips);
  }
  return median(bursts, probe_bursts);
}

// What `root` decided becomes known to the other one of two ranks. No collective call: a test of
// point-to-point messages uses nothing else.
static inline void share(void* what, size_t bytes, int root, int rank) {
  if (rank == root)
    MPI_Send(what, (int)bytes, MPI_BYTE, 1 - rank, 99, MPI_COMM_WORLD);
  else
    MPI_Recv(what, (int)bytes, MPI_BYTE, root, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// ---- buffers -------------------------------------------------------------------------------
// Plain malloc, as programs have it: not page-aligned. Touched once.
static inline char* new_buffer(size_t bytes) {
  char* p = malloc(bytes ? bytes : 1);
  if (!p) fail("out of memory");
  memset(p, 1, bytes ? bytes : 1);
  return p;
}

// "dirty": the sender changes one byte of each line before it sends, the receiver looks at one
// byte of each line after it received.
static inline void write_lines(char* p, size_t bytes, unsigned round) {
  for (size_t i = 0; i < bytes; i += cache_line) ((volatile char*)p)[i] = (char)round;
}

static volatile unsigned long read_sink;
static inline void read_lines(const char* p, size_t bytes) {
  unsigned long sum = 0;
  for (size_t i = 0; i < bytes; i += cache_line) sum += (unsigned long)((const volatile char*)p)[i];
  read_sink += sum;
}

// ---- a computation of known length ---------------------------------------------------------
// A chain of dependent multiplications: no memory, no library, so it takes the same time wherever
// it runs, unless something takes the core away.
static volatile uint64_t compute_sink;
static inline void compute(uint64_t units) {
  uint64_t x = compute_sink | 1;
  for (uint64_t i = 0; i < units; i++) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    __asm__ volatile("" : "+r"(x));
  }
  compute_sink = x;
}

// ns a unit: the quickest of several short runs, so preemption does not count.
static inline double calibrate_compute(void) {
  const uint64_t units = 100000;
  double best = 1e30;
  for (int i = 0; i < 9; i++) {
    double start = now_us();
    compute(units);
    double t = now_us() - start;
    if (t < best) best = t;
  }
  return best * 1e3 / (double)units;
}

// ---- output: one line of JSON a result, marked so that it is found in any launcher's output --
static inline void print_samples(const char* measure, size_t size, const char* buffers,
                                 const char* unit, double before, double after,
                                 const double* samples, int n) {
  printf(
      "@@{\"measure\":\"%s\",\"size\":%zu,\"buffers\":\"%s\",\"unit\":\"%s\","
      "\"probe\":[%.1f,%.1f],\"samples\":[",
      measure, size, buffers, unit, before, after);
  for (int i = 0; i < n; i++) printf("%s%.6g", i ? "," : "", samples[i]);
  printf("]}\n");
  fflush(stdout);
}
