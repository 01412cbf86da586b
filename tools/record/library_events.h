/* library_events: what our library does by itself, which no call shows (src/base/event_sink.h):
   faults, releases, prefetches, the message thread's helps. They wait in a ring for a thread of the
   program that writes them. Another MPI has none. Thread: the library's and the program's, at any
   time, put events into the ring; all else is locked. Owner: recorder.c. Invariant: who puts one
   neither waits nor calls anything, and what finds no room is counted. */
#ifndef HEADWAY_RECORD_LIBRARY_EVENTS_H
#define HEADWAY_RECORD_LIBRARY_EVENTS_H

#include <stdbool.h>

#include "recorder.h"

/* That MPI is the program's: a handle of dlopen. Not locked. */
RECORD_HIDDEN void record_find_library(void* mpi);
/* Events are wanted from now on, or no more. */
RECORD_HIDDEN void record_want_library(bool wanted);
/* What has come, to the file; where record_may_write. */
RECORD_HIDDEN void record_put_library(void);
/* Events that found no room. */
RECORD_HIDDEN uint64_t record_library_lost(void);

#endif
