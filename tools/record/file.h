/* file: this process's file of the recording, a row of blocks (docs/recording-format.md). Thread:
   any, all of it locked. Owner: recorder.c. Invariant: a block is in the file whole or not at all,
   but for one at its end; once the file was ended, nothing is written any more; a forked child
   writes nothing. */
#ifndef HEADWAY_RECORD_FILE_H
#define HEADWAY_RECORD_FILE_H

#include <stdbool.h>

#include "recorder.h"
#include "rows.h"
#include "text.h"

enum RecordBlockType {
  RECORD_HEADER = 1,
  RECORD_CLOCK,
  RECORD_EVENTS,
  RECORD_SITES,
  RECORD_COMMS,
  RECORD_END,
  RECORD_THREADS,
  RECORD_COUNTS,
  RECORD_PACKED_EVENTS, /* of format 2: nothing writes them any more */
  RECORD_FILLING,       /* no reader looks at it */
  RECORD_NARROW_EVENTS
};

/* Nothing is written any more: it was ended, or this process is not recorded. */
RECORD_HIDDEN extern bool record_over;

/* What the recording took of this process. */
typedef struct RecordCost {
  /* Of one call, as the layer has measured it: what it takes at least, and what at most; 0: it has
     not. */
  double least_ns, most_ns;
  double timed_ns; /* of what was timed when it was done: blocks, looks at the run delay */
  double time_ns;  /* since MPI was initialized */
} RecordCost;

/* Makes it; false: there is none, and the user was told. */
RECORD_HIDDEN bool record_make_file(int rank, int size);
RECORD_HIDDEN bool record_has_file(void);
/* It was made by a process that this one was forked from: that one's, and its lock is too. */
RECORD_HIDDEN bool record_is_others_file(void);
RECORD_HIDDEN bool record_may_write(void);
/* Where record_may_write. False: no room, and nothing of it is in the file. */
RECORD_HIDDEN bool record_put_block(enum RecordBlockType type, unsigned thread, const void* data,
                                    size_t length, uint64_t first, uint64_t last);
RECORD_HIDDEN void record_put_clock(void);
/* What the list has, and empties it; nothing if it has nothing. */
RECORD_HIDDEN void record_put_list(enum RecordBlockType type, RecordText* list);
/* Of one thread, at least one; a clock goes behind them. If there is no room they are lost, and the
 * user is told once. */
RECORD_HIDDEN void record_put_events(unsigned thread, const RecordEvent* events, size_t count);
/* The same of a thread's block of which this is the head, and the calls that it is of. */
RECORD_HIDDEN void record_put_rows(const RecordThread* of, const RecordBlockHead* head);
RECORD_HIDDEN void record_count_lost(uint64_t count); /* not written */
/* The last blocks, and closes it. `speaks`: for all ranks. */
RECORD_HIDDEN void record_finish_file(int finalized, bool speaks, RecordCost cost);

#endif
