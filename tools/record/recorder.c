/* recorder: the beginning and the end of a recording. See recorder.h. */
#define _GNU_SOURCE
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

#include "clocks.h"
#include "file.h"
#include "header.h"
#include "lock.h"
#include "shared_now.h"
#include "sites.h"
#include "switches.h"
#include "threads.h"

pthread_mutex_t record_mutex = PTHREAD_MUTEX_INITIALIZER;
RECORD_API int record_finalized;
RECORD_API RecordCallTicks record_call_ticks;

static bool speaks;    /* for all ranks */
static uint64_t begun; /* ticks when MPI was initialized */

/* `ending`: ticks at which the recording's end began. */
static RecordCost cost_until_now(uint64_t ending) {
  const uint64_t now = record_now();
  return (RecordCost){.least_ns = record_call_ticks.least / record_ticks_per_ns,
                      .most_ns = record_call_ticks.most / record_ticks_per_ns,
                      .timed_ns = (double)(record_timed() + now - ending) / record_ticks_per_ns,
                      .time_ns = (double)(now - begun) / record_ticks_per_ns};
}

void record_begin_file(int rank, int size, const char* mpi) {
  record_lock();
  if (record_has_file() || record_over) {
    record_unlock();
    return;
  }
  record_over = !record_wants_rank(rank, size);
  /* The first of the recorded ones speaks for all, and tidies up. */
  speaks = size <= 0 || rank == record_first_rank(size);
  if (!record_over && !record_make_file(rank, size)) record_over = true;
  if (!record_over) {
    record_learn_rate();
    record_begin_now(rank, size);
    record_put_header(rank, size, mpi);
    const RecordReading start = record_first_reading();
    record_put_block(RECORD_CLOCK, 0, &start, sizeof start, 0, 0);
    record_put_clock();
    record_begin_time();
    begun = record_now();
  }
  record_decide();
  record_unlock();
}

void record_end_file(int finalized) {
  /* A forked child ends, and whoever held the lock at the fork is not there to give it up. */
  if (record_is_others_file()) return;
  const uint64_t ending = record_now();
  record_lock();
  if (record_may_write()) {
    record_write_all();
    record_put_names();
    record_end_now();
    record_finish_file(finalized, speaks, cost_until_now(ending));
  }
  record_switch_off();
  record_unlock();
}

__attribute__((constructor)) static void record_start(void) {
  const char *on = getenv("HEADWAY_RECORD"), *plan = getenv("HEADWAY_RECORD_TRY");
  if (!on || strcmp(on, "1") != 0 || (plan && *plan)) return; /* a try records nothing */
  record_start_clocks();
  record_start_sites();
  record_start_switches();
}

__attribute__((destructor)) static void record_stop(void) {
  if (record_enabled) record_end_file(record_finalized);
}
