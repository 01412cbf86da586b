/* sites: the table of call sites, between its parts in librecorder. A site is known by an address
   in the program, or, of Python, by a key that its code object and instruction make. Thread: any.
   Owner: recorder.c. Invariant: an id stands for one site for ever; 0 is none. */
#ifndef HEADWAY_RECORD_SITES_H
#define HEADWAY_RECORD_SITES_H

#include "recorder.h"

#define RECORD_HIDDEN __attribute__((visibility("hidden")))

RECORD_HIDDEN int record_is_python_module(const char* path);
RECORD_HIDDEN uint32_t record_find_site(uint64_t key);
/* Texts are escaped for JSON. */
RECORD_HIDDEN uint32_t record_tell_python_site(uint64_t key, const char* file, const char* function,
                                               int line);

#endif
