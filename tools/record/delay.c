/* delay: see delay.h. */
#define _GNU_SOURCE
#include "delay.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint64_t look_again_ns = 1000000;

void record_open_delay(RecordThread* me) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", (long)syscall(SYS_gettid));
  me->schedstat = open(path, O_RDONLY | O_CLOEXEC);
}

void record_close_delay(RecordThread* me) {
  if (me->schedstat >= 0) close(me->schedstat);
  me->schedstat = -1;
}

/* ns in which this thread wanted a core and had none: the second number of its schedstat. */
static bool read_delay(const RecordThread* me, uint64_t* delay) {
  char text[96];
  if (me->schedstat < 0) return false;
  const ssize_t got = pread(me->schedstat, text, sizeof text - 1, 0);
  if (got <= 0) return false;
  text[got] = 0;
  char* at;
  strtoull(text, &at, 10);
  *delay = strtoull(at, NULL, 10);
  return true;
}

void record_look_at_delay(RecordThread* me, uint64_t begin, uint64_t end, int is_wait) {
  const uint64_t apart = (uint64_t)(look_again_ns * record_ticks_per_ns);
  if (!is_wait && me->delay_read && end - me->delay_read < apart) return;
  uint64_t delay;
  if (!read_delay(me, &delay)) return;
  const uint64_t was = me->delay_ns;
  const bool known = me->delay_read != 0;
  me->delay_ns = delay;
  me->delay_read = end;
  if (!is_wait || !known || delay <= was) return;
  const uint64_t most = (uint64_t)((double)(end - begin) / record_ticks_per_ns);
  const uint64_t taken = delay - was < most ? delay - was : most;
  if (taken >= 1000) {
    record_put(me, RECORD_CORE_TAKEN, 0, 0, begin, end, 0, RECORD_NONE, RECORD_NONE, 0, taken);
  }
}
