/* switches: whether calls are recorded now, and which: --calls, --ranks, --from, --to and
   MPI_Pcontrol. The hot path reads record_live, record_wanted and record_next_switch (recorder.h);
   only here they are written. Thread: any. Owner: recorder.c. Invariant: once the file was ended,
   nothing is recorded any more. */
#ifndef HEADWAY_RECORD_SWITCHES_H
#define HEADWAY_RECORD_SWITCHES_H

#include <stdbool.h>

#include "recorder.h"

/* The program was started by headway record. */
RECORD_HIDDEN extern bool record_enabled;

/* At the process's start: reads what was asked for. */
RECORD_HIDDEN void record_start_switches(void);
/* Whether --ranks, of a world of that size (0: there is none), names that one; and the first rank
 * that it names. */
RECORD_HIDDEN bool record_wants_rank(int rank, int size);
RECORD_HIDDEN int record_first_rank(int size);
/* From here on --from and --to count. */
RECORD_HIDDEN void record_begin_time(void);
RECORD_HIDDEN void record_decide(void);     /* on or off; locked */
RECORD_HIDDEN void record_switch_off(void); /* for ever; locked */

#endif
