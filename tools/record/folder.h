/* folder: where a run's files go (folder.c). */
#ifndef HEADWAY_RECORD_FOLDER_H
#define HEADWAY_RECORD_FOLDER_H

#include <limits.h>
#include <stddef.h>

typedef struct RecordPlace {
  char folder[PATH_MAX];
  char link[PATH_MAX]; /* at which the job's ranks meet; empty for one rank */
  char path[PATH_MAX]; /* this rank's file */
} RecordPlace;

/* Makes this rank's file, of a world of that size (0: there is none). Its descriptor, or -1 with
 * errno. */
__attribute__((visibility("hidden"))) int record_open(RecordPlace* place, int rank, int size);
__attribute__((visibility("hidden"))) void record_close(const RecordPlace* place); /* of one rank */

#endif
