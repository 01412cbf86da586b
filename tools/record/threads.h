/* threads: the threads that call MPI, each with its buffer of records. Thread: any. Owner:
   recorder.c. Invariant: only its own thread puts records into a buffer; at the process's end
   whoever ends it writes all of them once, and from then on they are only read. */
#ifndef HEADWAY_RECORD_THREADS_H
#define HEADWAY_RECORD_THREADS_H

#include "recorder.h"

/* What all threads have, to the file; locked. */
RECORD_HIDDEN void record_write_all(void);
/* For what is no thread of the program, but stands in the file: no thread has it, as long as there
   are fewer than 255. After a thread's first call; locked. */
RECORD_HIDDEN unsigned record_take_number(void);
/* Ticks that blocks and looks at the run delay have taken, of all threads; locked. */
RECORD_HIDDEN uint64_t record_timed(void);
/* Recording was off from `begin` to `end`: said by the calling thread, if it has a buffer; locked.
 */
RECORD_HIDDEN void record_put_gap(uint64_t begin, uint64_t end);

/* record_forget_memos; locked. */
RECORD_HIDDEN void record_forget_memos_locked(void);

#endif
