/* shared_now: the memory of now.h: who makes it, who gets a place in it. Thread: any, locked.
   Owner: recorder.c. Invariant: it lies where it lies for the process's life; a forked child writes
   nothing into it. */
#ifndef HEADWAY_RECORD_SHARED_NOW_H
#define HEADWAY_RECORD_SHARED_NOW_H

#include "recorder.h"

#define RECORD_NOW_NAME "headway-now" /* of the memfd */

/* Before the first call of MPI: it begins. */
RECORD_HIDDEN void record_start_now(void);
/* MPI was initialized. */
RECORD_HIDDEN void record_begin_now(int rank, int size);
/* The process leaves MPI; what it has sent and received goes to the file, where it may write. */
RECORD_HIDDEN void record_end_now(void);
/* Its descriptor, by which others find it; -1: nobody can. */
RECORD_HIDDEN int record_now_file(void);
/* The calling thread's place: `alone` where there is none that others see. */
RECORD_HIDDEN RecordWait* record_take_wait(RecordWait* alone);
RECORD_HIDDEN void record_give_wait(RecordWait* wait);

#endif
