/* text: lists of JSON that grow, and what librecorder says to the user. Thread: whoever has the
   list; any may say something. Owner of a list: who declares it. Invariant: a list is whole at any
   time: what found no memory is not in it. */
#ifndef HEADWAY_RECORD_TEXT_H
#define HEADWAY_RECORD_TEXT_H

#include "recorder.h"

typedef struct RecordText { /* without its end, "]" */
  char* data;
  size_t length, room;
} RecordText;

RECORD_HIDDEN void record_add_text(RecordText* list, const char* text);
/* One line on stderr, in one piece. */
RECORD_HIDDEN void record_say(const char* format, ...) __attribute__((format(printf, 1, 2)));

#endif
