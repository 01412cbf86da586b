/* clocks: see clocks.h. */
#define _GNU_SOURCE
#include "clocks.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

RECORD_API int record_clock_is_tsc;
RECORD_API double record_ticks_per_ns = 1;
enum { block_ns = 1000000000, apart_ns = 1000000, wait_ns = 100000 };
RECORD_API RecordSpans record_spans = {block_ns, apart_ns, wait_ns};

static struct {
  RecordReading start;
  uint64_t test_offset;
  double test_drift;
} self;

static bool is_tsc_steady(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8))) return true;
  char name[32] = "";
  const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                        O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t got = read(file, name, sizeof name - 1);
  close(file);
  return got > 0 && (!strncmp(name, "tsc", 3) || !strncmp(name, "kvm-clock", 9));
#elif defined(__aarch64__)
  return true; /* its counter never stops */
#else
  return false;
#endif
}

static RecordReading read_clocks(void) {
  struct timespec real;
  RecordReading now;
  /* The reading that was least disturbed of three: both clocks within the same few ns. */
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = record_now();
    const uint64_t ns = record_ns();
    const uint64_t after = record_now();
    if (after - before < best) {
      best = after - before;
      now.ticks = before + (after - before) / 2;
      now.monotonic = ns;
    }
  }
  clock_gettime(CLOCK_REALTIME, &real);
  now.realtime = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
  return now;
}

void record_start_clocks(void) {
  record_clock_is_tsc = is_tsc_steady();
  self.start = read_clocks();
  const char* clock = getenv("HEADWAY_RECORD_TEST_CLOCK");
  if (!clock) return;
  char* at;
  self.test_offset = (uint64_t)strtoll(clock, &at, 10);
  self.test_drift = *at == ',' ? strtod(at + 1, NULL) * 1e-6 : 0;
}

int record_has_test_clock(void) { return self.test_offset || self.test_drift != 0; }

/* A test's clock is wrong as that of another host: its real time, too, by which hosts are compared
   at first. */
static RecordReading in_test(RecordReading now) {
  const double since = (double)(now.monotonic - self.start.monotonic);
  const uint64_t wrong = self.test_offset + (uint64_t)(int64_t)(since * self.test_drift);
  now.monotonic += wrong;
  now.realtime += wrong;
  return now;
}

RecordReading record_first_reading(void) { return in_test(self.start); }
RecordReading record_read_clocks(void) { return in_test(read_clocks()); }

void record_learn_rate(void) {
  const RecordReading now = read_clocks();
  const uint64_t ns = now.monotonic - self.start.monotonic;
  if (ns <= 100000) return;
  const double rate = (double)(now.ticks - self.start.ticks) / (double)ns;
  record_ticks_per_ns = rate;
  record_spans = (RecordSpans){(uint64_t)(block_ns * rate), (uint64_t)(apart_ns * rate),
                               (uint64_t)(wait_ns * rate)};
}
