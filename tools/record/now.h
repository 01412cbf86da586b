/* now: what this process does now, for `headway where`: which waits its threads are in, and, in the
   layer's tables (layer_tables.h, layer_now.h), what it has sent, received and begun. It lies in
   memory that others may map, a memfd; its layout is docs/recording-format.md.

   Thread: each writes its own wait; the rest is written as its owner says. Owner: now.c. Invariant:
   a wait's `serial` is odd exactly as long as the other fields hold; it is another one for each
   wait. Nobody here reads what another process might have written. */
#ifndef HEADWAY_RECORD_NOW_H
#define HEADWAY_RECORD_NOW_H

#include <stddef.h>
#include <stdint.h>

enum { RECORD_NOW_VERSION = 2 };
enum {
  RECORD_NOW_WAITS = 64, /* threads whose waits are told */
  RECORD_NOW_KEYS = 32,  /* requests of a wait that are told */
  RECORD_NOW_OWN = 32    /* threads of the MPI that are told */
};
enum { RECORD_NOW_BEFORE, RECORD_NOW_INSIDE, RECORD_NOW_OVER }; /* `state` */

/* One thread's. What `flags` name of it holds: of a receive `peer` and `tag`, of a send `to`,
   `to_tag` and `number`, of a collective `peer`, its root, and `number`; of a call on requests the
   first `keys`. */
typedef struct RecordWait {
  uint64_t serial;
  uint64_t begin;           /* ticks */
  uint64_t polls;           /* calls that found nothing, ever; and the last of them: */
  uint16_t kind;            /* of the wait */
  uint8_t flags, reserved1; /* RECORD_SEND and so on (recorder.h) */
  uint32_t site, comm;
  int32_t peer, tag, to, to_tag;
  uint32_t number;   /* which of the sends to that process, or of the communicator's collectives */
  int32_t thread;    /* the kernel's number; 0: nobody has this place */
  uint32_t requests; /* that it was called with */
  uint16_t poll_kind, reserved2;
  uint32_t reserved4;
  uint64_t keys[RECORD_NOW_KEYS]; /* by which `operations` are found; 0: none */
  uint64_t reserved3[7];
} RecordWait;

typedef struct RecordNow {
  uint64_t magic; /* the last that is written at the start */
  uint32_t version, bytes;
  uint64_t started; /* as the file's header has it */
  int32_t pid, rank, size;
  uint32_t state;
  uint32_t several; /* threads may be in calls at once */
  uint32_t odd;     /* something happened of which the counts below do not know */
  uint64_t operations_at, operations, slots_at, slots, channels_at, channels;
  uint32_t unseen; /* threads without a place in `waits` */
  uint32_t own_threads;
  uint64_t ticks, ns; /* at one moment, of CLOCK_MONOTONIC */
  double ticks_per_ns;
  int32_t own[RECORD_NOW_OWN]; /* threads that MPI_Init has started */
  uint8_t reserved[256];
  RecordWait waits[RECORD_NOW_WAITS];
} RecordNow;

_Static_assert(sizeof(RecordWait) == 384 && offsetof(RecordWait, keys) == 72, "as documented");
_Static_assert(offsetof(RecordNow, own) == 128 && offsetof(RecordNow, waits) == 512,
               "as documented");

#endif
