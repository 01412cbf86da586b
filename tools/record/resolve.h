/* resolve: which layer speaks the ABI of the MPI that is loaded (resolve.c). Thread: any. Owner:
   librecorder. Invariant: looked for once; the answer never changes. */
#ifndef HEADWAY_RECORD_RESOLVE_H
#define HEADWAY_RECORD_RESOLVE_H

#include "layer.h"
#include "recorder.h"

/* Null: the program runs unrecorded, and was told why if it is to be recorded. */
RECORD_HIDDEN const RecordLayer* record_find_layer(void);
RECORD_HIDDEN const char* record_last_part(const char* path); /* a file's name without folders */

enum { RECORD_MOST_NAMES = 32 };
typedef struct RecordNames {
  const char* all[RECORD_MOST_NAMES];
  unsigned count;
} RecordNames;
/* The loaded objects whose names begin as those of MPI do. */
RECORD_HIDDEN void record_names_of_mpi(RecordNames* names);

#endif
