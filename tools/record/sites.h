/* sites: the numbers that records have instead of names: of call sites and of communicators. A site
   is known by an address in the program, or, of Python, by a key that its code object and
   instruction make. Thread: any. Owner: recorder.c. Invariant: an id stands for one site for ever;
   0 is none; a number's name is in the file before the first record that has it. */
#ifndef HEADWAY_RECORD_SITES_H
#define HEADWAY_RECORD_SITES_H

#include "recorder.h"

RECORD_HIDDEN void record_start_sites(void); /* at the process's start */
RECORD_HIDDEN int record_is_python_module(const char* path);
RECORD_HIDDEN uint32_t record_find_site(uint64_t key);
/* Texts are escaped for JSON. */
RECORD_HIDDEN uint32_t record_tell_python_site(uint64_t key, const char* file, const char* function,
                                               int line);
/* The names that came since the last time, to the file; locked. */
RECORD_HIDDEN void record_put_names(void);

#endif
