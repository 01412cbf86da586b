/* delay: see delay.h. */
#define _GNU_SOURCE
#include "delay.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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
  const ssize_t got = pread(me->schedstat, text, sizeof text - 1, 0);
  if (got <= 0) return false;
  text[got] = 0;
  char* at;
  strtoull(text, &at, 10);
  *delay = strtoull(at, NULL, 10);
  return true;
}

/* How often it was taken off its core, and went off by itself: as long as that stays, its run delay
   does, and the kernel answers it in a fraction of the time. */
static bool was_switched(RecordThread* me) {
  struct rusage now;
  if (getrusage(RUSAGE_THREAD, &now) != 0) return true;
  const uint64_t count = (uint64_t)now.ru_nvcsw + (uint64_t)now.ru_nivcsw;
  const bool was = count != me->switches;
  me->switches = count;
  return was;
}

static void look(RecordThread* me, uint64_t begin, uint64_t end, int is_wait) {
  if (me->schedstat < 0) {
    me->delay_read = end; /* so that it is not asked again at once */
    return;
  }
  const bool known = me->delay_read != 0;
  if (!is_wait && known && end - me->delay_read < record_spans.apart) return;
  if (!was_switched(me) &&
      known) { /* before the delay is read: what comes in between is seen next time */
    me->delay_read = end;
    return;
  }
  uint64_t delay;
  if (!read_delay(me, &delay)) return;
  const uint64_t was = me->delay_ns;
  me->delay_ns = delay;
  me->delay_read = end;
  if (!is_wait || !known || delay <= was) return;
  const uint64_t most = (uint64_t)((double)(end - begin) / record_ticks_per_ns);
  const uint64_t taken = delay - was < most ? delay - was : most;
  if (taken >= 1000) {
    record_put(me, RECORD_CORE_TAKEN, 0, 0, begin, end, 0, RECORD_NONE, RECORD_NONE, 0, taken);
  }
}

void record_look_at_delay(RecordThread* me, uint64_t begin, uint64_t end, int is_wait) {
  const uint64_t from = record_now();
  look(me, begin, end, is_wait);
  record_set_until(me);
  me->timed += record_now() - from;
}
