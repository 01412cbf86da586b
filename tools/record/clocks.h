/* clocks: which counter times the calls, and what its ticks are in ns. Thread: any, once it was
   started; `record_learn_rate` locked. Owner: recorder.c. Invariant: the counter and the first
   reading do not change after the start. */
#ifndef HEADWAY_RECORD_CLOCKS_H
#define HEADWAY_RECORD_CLOCKS_H

#include "recorder.h"

typedef struct RecordReading { /* all at once; as it stands in the file */
  uint64_t ticks, monotonic, realtime;
} RecordReading;

/* Chooses the counter and reads all clocks for the first time. */
RECORD_HIDDEN void record_start_clocks(void);
/* How fast the counter runs, from the time since the start. */
RECORD_HIDDEN void record_learn_rate(void);
RECORD_HIDDEN RecordReading record_first_reading(void);
RECORD_HIDDEN RecordReading record_read_clocks(void);
/* A test gave this process a clock of its own (HEADWAY_RECORD_TEST_CLOCK: ns, ppm). */
RECORD_HIDDEN int record_has_test_clock(void);

#endif
