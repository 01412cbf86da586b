/* lock: the one lock of librecorder, which its parts share: file, sites, communicators, threads and
   switches are read and changed by whoever holds it. Where a header says "locked", the caller holds
   it; all other functions take it themselves. Thread: any. Owner: recorder.c. Invariant: whoever
   holds it calls nothing of MPI and nothing of Python; a forked child never waits for it. */
#ifndef HEADWAY_RECORD_LOCK_H
#define HEADWAY_RECORD_LOCK_H

#include <pthread.h>

#include "recorder.h"

extern RECORD_HIDDEN pthread_mutex_t record_mutex;

static inline void record_lock(void) { pthread_mutex_lock(&record_mutex); }
static inline void record_unlock(void) { pthread_mutex_unlock(&record_mutex); }

#endif
