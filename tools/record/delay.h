/* delay: how long a thread had no core although it could have run: the kernel's run delay. Thread:
   the one that it is about. Owner: threads.c. Invariant: where the kernel does not tell, nothing is
   recorded of it. */
#ifndef HEADWAY_RECORD_DELAY_H
#define HEADWAY_RECORD_DELAY_H

#include "recorder.h"

RECORD_HIDDEN void record_open_delay(RecordThread* me); /* the calling thread */
RECORD_HIDDEN void record_close_delay(RecordThread* me);

#endif
