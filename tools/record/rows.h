/* rows: a thread's events until they are in the file, packed from the beginning: most calls of a
   program differ from earlier ones in nothing but their times and the number of their operation. So
   a block has each shape of event once, and a row of 8 bytes an event, of a long one two
   (docs/recording-format.md).
   An event of the shape that came behind the one before it last time becomes a row where it is put
   (record_put); what is rarer, here. Thread: its own. Owner: threads.c. Invariant: what a block
   holds reads back as the same events, in their order. */
#ifndef HEADWAY_RECORD_ROWS_H
#define HEADWAY_RECORD_ROWS_H

#include <stdbool.h>

#include "recorder.h"

/* The payload's beginning; shapes and rows come behind it. */
typedef struct RecordBlockHead {
  uint32_t rows, shapes;
  uint64_t begin; /* of the first event */
  uint32_t requests, events;
} RecordBlockHead;

_Static_assert(sizeof(RecordShape) == 32 && sizeof(RecordRow) == 8 && sizeof(RecordBlockHead) == 24,
               "as documented");

/* Nothing is in the block. */
RECORD_HIDDEN void record_empty_rows(RecordThread* me);
/* False: it does not fit into the block as it is. In an empty one there is room for each event that
   does not end before it begins and takes less than 2^48 ticks. */
RECORD_HIDDEN bool record_add_row(RecordThread* me, const RecordEvent* event);
/* What is in the block at this moment: also of a thread that is in a call, at the process's end. */
RECORD_HIDDEN RecordBlockHead record_head_of(const RecordThread* of);
/* Of these events the largest end. */
RECORD_HIDDEN uint64_t record_last_of(const RecordThread* of, const RecordBlockHead* head);

#endif
