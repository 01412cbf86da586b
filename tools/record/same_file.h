/* same_file: whether a descriptor still is the file that it was. A program may close what it does
   not know, as daemons do, and open files of its own under the same numbers: nothing may be written
   to those. Thread: any. Owner: whoever has the descriptor. */
#ifndef HEADWAY_RECORD_SAME_FILE_H
#define HEADWAY_RECORD_SAME_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

typedef struct RecordSameFile {
  dev_t device;
  ino_t number;
} RecordSameFile;

/* Of nothing where `file` is no descriptor. */
static inline RecordSameFile record_file_now(int file) {
  struct stat about;
  if (file < 0 || fstat(file, &about) != 0) return (RecordSameFile){0, 0};
  return (RecordSameFile){about.st_dev, about.st_ino};
}

static inline bool record_is_same(int file, RecordSameFile was) {
  const RecordSameFile is = record_file_now(file);
  return is.number != 0 && is.number == was.number && is.device == was.device;
}

#endif
