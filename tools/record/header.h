/* header: the first block of a file: what ran where, and what its numbers mean. Thread: that which
   initializes MPI, locked. Owner: recorder.c. Invariant: it is JSON whatever the program, its
   arguments and the host are called. */
#ifndef HEADWAY_RECORD_HEADER_H
#define HEADWAY_RECORD_HEADER_H

#include "recorder.h"

RECORD_HIDDEN void record_put_header(int rank, int size, const char* mpi);

#endif
