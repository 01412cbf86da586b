/* recorder: what the layers of all MPIs share. A recording is written by two objects: librecorder
   (this interface; preloaded, knows no MPI), and one layer for each MPI's ABI (layer.c, compiled
   with that MPI's mpicc), which it loads when the program first calls MPI. The format is
   docs/recording-format.md.

   Thread: each thread writes into its own buffer; the rest is told below. Owner: librecorder.
   Invariant: nothing here sends a message, and nothing calls MPI. */
#ifndef HEADWAY_RECORDER_H
#define HEADWAY_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif
#include <time.h>

#include "now.h"

enum {
  RECORD_SEND = 1,
  RECORD_RECEIVE = 2,
  RECORD_COLLECTIVE = 4,
  RECORD_ANY_SOURCE = 8,
  RECORD_ANY_TAG = 16,
  RECORD_IN_VAIN = 32,
  RECORD_FAILED = 64,
  RECORD_PARTITIONED = 128
};
/* The tag of a persistent collective's start: its init function, and above it which of those that
 * were made on its communicator it is. */
enum { RECORD_MOST_KINDS = 1 << 12, RECORD_MOST_PERSISTENT = 1 << 19 };
enum { RECORD_COMPLETION = 0x8000, RECORD_CORE_TAKEN = 0x8001, RECORD_GAP = 0x8002 };
enum { RECORD_NONE = -1, RECORD_ANY = -2 };
enum { RECORD_VERSION = 3 };

typedef struct RecordEvent {
  uint16_t kind;
  uint8_t thread;
  uint8_t flags;
  uint32_t site;
  uint64_t begin, end; /* ticks */
  uint32_t comm;
  int32_t peer, tag;
  uint32_t request;
  uint64_t bytes;
} RecordEvent;

/* What events of a block have in common, and what each one has beside (rows.h). */
typedef struct RecordShape {
  uint16_t kind;
  uint8_t thread, flags;
  uint32_t site, comm;
  int32_t peer, tag;
  uint16_t since, took; /* above the 32 bits of its rows */
  uint64_t bytes;
} RecordShape;

/* Ticks above 16 bits are in a row of their own before it, of no event, whose shape is RECORD_FAR.
   A completion without such a row has the times of the event before it. */
typedef struct RecordRow {
  uint16_t since; /* ticks, since the begin of the event before; of the first one 0 */
  uint16_t took;
  uint16_t shape;
  uint16_t request; /* 0: none, else its number less `requests` */
} RecordRow;

/* Of a block: with its few shapes and all that stands around it, 64 KB, which the kernel writes at
   the price of 48. */
enum { RECORD_ROWS = 8064, RECORD_SHAPES = 512, RECORD_PLACES = 1024, RECORD_FAR = UINT16_MAX };

/* Tests that found nothing, one behind the other from one site: one record for all of them. */
typedef struct RecordVain {
  uint32_t count, site;
  uint16_t kind;
  uint64_t begin, end, inside;
} RecordVain;

enum { RECORD_SITE_CACHE = 256 };
/* An id that says: a call from there belongs to a line of Python. */
#define RECORD_ASK_PYTHON UINT32_MAX
typedef struct RecordKnownSite {
  uintptr_t address;
  uint32_t id;
} RecordKnownSite;

/* What followed from a call's place and arguments last time: a call with the same ones is told by
   it, without a look at anything else (layer_quick.h). It holds as long as its thread's `epoch` is
   that of its `stamp`. */
enum { RECORD_MEMOS = 128, RECORD_EPOCH = RECORD_MOST_KINDS };
typedef struct RecordMemo {
  uintptr_t from; /* where the program called */
  uint64_t stamp; /* the epoch, and above it the kind */
  /* As the program gave them: */
  uint64_t type, comm;
  int32_t count, peer, tag; /* of a call on requests `peer` is how many */
  uint32_t site;
  void* channel;
  uint32_t shape; /* of its row */
  uint32_t over_shape : 16, flags : 8, reserved : 8;
  /* Of an operation that it begins: what the layer's table has of it, but its numbers. */
  uint64_t operation[4];
  struct RecordMemo* memo; /* this one */
  uint64_t serial;         /* another one each time that it is written */
  /* When that is over: */
  uint64_t over;       /* the serial of the wait for it last time */
  uint64_t over_bytes; /* of that row's shape */
} RecordMemo;

typedef struct RecordThread {
  /* What each call looks at comes first, in two cache lines. */
  RecordRow *next, *limit; /* in `rows` */
  uint8_t depth; /* calls of MPI that it is in: those inside another one are not the program's */
  uint8_t off;   /* the call that it is in is not recorded, only followed */
  uint8_t number;
  uint16_t at;           /* a row's shape, mostly the last one's; RECORD_SHAPES: no row is there */
  uint32_t requests;     /* from where the numbers of rows are counted */
  const void* from;      /* where the program called, of the call that it is in */
  uint64_t epoch;        /* in steps of RECORD_EPOCH: another one, and no memo holds any more */
  uint64_t until;        /* ticks from which on something is to be done beside recording */
  uint64_t long_wait;    /* in ticks: its run delay is looked at behind such a call */
  uint64_t before, last; /* begin and end of the last row's event */
  uint64_t calls;        /* that are in the block */
  RecordWait* now;       /* what others see of its wait */
  uint64_t last_block;   /* ticks at which a block was last written; 0: names wait for the next */
  uint64_t delay_read;   /* ticks at which its run delay was last known */
  RecordVain vain;       /* where it counts some, `at` is RECORD_SHAPES */
  uint32_t shape_count;
  uint32_t far_rows;     /* in the block: those that are no event's */
  uint64_t first;        /* begin of the first row's event */
  uint64_t delay_ns;     /* run delay when it was last read */
  uint64_t switches;     /* how often it had left its core by then */
  uint64_t timed;        /* ticks that its blocks and its looks at the run delay have taken */
  int schedstat;         /* file, -1: none */
  uint32_t fortran_site; /* of its last call from Fortran */
  RecordKnownSite sites[RECORD_SITE_CACHE], python_sites[RECORD_SITE_CACHE];
  RecordMemo memos[RECORD_MEMOS] __attribute__((aligned(64)));
  uint32_t seen[RECORD_MEMOS]; /* of a call that was there last and is not remembered */
  RecordRow rows[RECORD_ROWS];
  /* The last is no event's. Each in one cache line. */
  RecordShape shapes[RECORD_SHAPES + 1] __attribute__((aligned(32)));
  uint16_t behind[RECORD_SHAPES + 1]; /* the shape that came behind it last time */
  uint16_t places[RECORD_PLACES];     /* by what a shape is: its index + 1; 0: empty */
  struct RecordThread* other;         /* list of all */
  RecordWait alone;                   /* what `now` is where there is no place that others see */
} RecordThread;

_Static_assert(sizeof(RecordMemo) == 128 && offsetof(RecordMemo, operation) == 64,
               "in two cache lines");
_Static_assert(offsetof(RecordThread, vain) <= 128, "in two cache lines");

#define RECORD_API __attribute__((visibility("default")))
/* On the way of each call: a compiler that thinks of size would call some of them. */
#define RECORD_INLINE static inline __attribute__((always_inline))
#define RECORD_HIDDEN __attribute__((visibility("hidden"))) /* between the parts of librecorder */

/* Of this thread; null until its first call. */
extern RECORD_API __thread RecordThread* record_me __attribute__((tls_model("initial-exec")));
/* Where a call from Fortran came from, until it reaches C; 0: none is under way. */
extern RECORD_API __thread uintptr_t record_fortran_caller
    __attribute__((tls_model("initial-exec")));
extern RECORD_API uint8_t record_wanted[]; /* by kind: whether that function is recorded now */
extern RECORD_API uint8_t
    record_live; /* requests and communicators are followed: also where nothing is recorded now */
extern RECORD_API int record_clock_is_tsc;
extern RECORD_API uint64_t
    record_next_switch; /* ticks at which recording goes on or off by itself */

extern RECORD_API double record_ticks_per_ns;
/* In ticks: a block is written at least that often; how far looks at the run delay are apart; from
 * where on a wait is long. */
typedef struct RecordSpans {
  uint64_t block, apart, wait;
} RecordSpans;
extern RECORD_API RecordSpans record_spans;
/* What recording a call takes, from warm caches to cold ones; 0: not measured. */
typedef struct RecordCallTicks {
  double least, most;
} RecordCallTicks;
extern RECORD_API RecordCallTicks record_call_ticks;
extern RECORD_API int record_finalized;       /* all sessions were finalized */
extern RECORD_API RecordNow* record_now_page; /* never null */
/* Memory that others see, as now.h says, of whole pages and all 0; null without memory. `at`: where
   it lies in the file; 0: nobody sees it. */
RECORD_API void* record_now_room(size_t bytes, uint64_t* at);
RECORD_API void record_now_give_back(void* memory, size_t bytes, uint64_t at);

RECORD_API RecordThread* record_first_call(void);
/* record_enter, where it is no call like most. */
RECORD_API RecordThread* record_enter_otherwise(unsigned kind);
/* record_put, of an event that is not like those before it. */
RECORD_API void record_put_otherwise(RecordThread* me, const RecordEvent* event);
RECORD_API void record_write(RecordThread* me); /* its buffer, to the file */
RECORD_API void record_write_vain(RecordThread* me);
RECORD_API void record_switch(void);
/* `until` anew, after something of what it depends on has changed. */
RECORD_API void record_set_until(RecordThread* me);
/* A call that may take long begins, and `until` is over: writes what is to be written, and looks at
   the run delay. When the call begins. */
RECORD_API uint64_t record_due(RecordThread* me, uint64_t now);
/* What memos say may hold no more: of all threads. */
RECORD_API void record_forget_memos(void);
RECORD_API uint32_t record_other_site(RecordThread* me,
                                      uintptr_t address); /* not in the thread's cache */
RECORD_API uint32_t record_python_site(RecordThread* me);
/* A place in the code of an MPI's libraries, if there was a call from Fortran; no program's. */
RECORD_API int record_is_of_mpi(uintptr_t at);
/* `from`: where C was called. Where the program called, if that was from Fortran. */
RECORD_API uintptr_t record_fortran_from(uintptr_t from);
RECORD_API uint32_t record_fortran_site(RecordThread* me, uintptr_t from);
RECORD_API void record_look_at_delay(RecordThread* me, uint64_t begin, uint64_t end, int is_wait);

/* Told by the layer. `text` is JSON. */
RECORD_API void record_tell_comm(const char* text);
/* What of the world is known (size 0: there is none), and all that the MPI says of itself: once,
   when MPI was initialized. */
RECORD_API void record_begin_file(int rank, int size, const char* mpi);
RECORD_API void record_end_file(int finalized);
RECORD_API void record_level(int level); /* MPI_Pcontrol */
RECORD_API void record_flush(void);      /* what the calling thread has, to the file */
RECORD_API size_t record_append_json(char* to, size_t room,
                                     const char* text); /* escaped, without quotes */

static inline uint64_t record_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A layer has a copy of its own, which is not looked for in another object each time. */
#ifndef RECORD_CLOCK_IS_TSC
#define RECORD_CLOCK_IS_TSC record_clock_is_tsc
#endif

RECORD_INLINE uint64_t record_now(void) {
#if defined(__x86_64__)
  if (__builtin_expect(RECORD_CLOCK_IS_TSC, 1)) return __rdtsc();
#elif defined(__aarch64__)
  if (__builtin_expect(RECORD_CLOCK_IS_TSC, 1)) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#endif
  return record_ns();
}

/* Null: there is no recording, or this call is inside another one. Else record_leave must follow.
   What is wanted is live. */
RECORD_INLINE RecordThread* record_enter(unsigned kind) {
  RecordThread* me = record_me;
  if (__builtin_expect(me == NULL || !record_wanted[kind] || me->depth != 0, 0))
    return record_enter_otherwise(kind);
  me->depth = 1;
  me->off = 0;
  ++me->calls;
  return me;
}

RECORD_INLINE void record_leave(RecordThread* me) { me->depth = 0; }

RECORD_INLINE uint32_t record_site_at(RecordThread* me, uintptr_t at) {
  RecordKnownSite* known = &me->sites[(at ^ (at >> 8)) % RECORD_SITE_CACHE];
  const uint32_t id =
      __builtin_expect(known->address == at, 1) ? known->id : record_other_site(me, at);
  return __builtin_expect(id == RECORD_ASK_PYTHON, 0) ? record_python_site(me) : id;
}

RECORD_INLINE uint32_t record_site(RecordThread* me, const void* address) {
  if (__builtin_expect(record_fortran_caller != 0, 0))
    return record_fortran_site(me, (uintptr_t)address);
  return record_site_at(me, (uintptr_t)address);
}

/* A shape's words as they lie in memory, on machines whose numbers begin with their low bytes. */
typedef uint64_t __attribute__((may_alias)) RecordWord;

/* The way of what is rare. */
#define RECORD_PUT_OTHERWISE()                          \
  do {                                                  \
    const RecordEvent event = {.kind = (uint16_t)kind,  \
                               .thread = me->number,    \
                               .flags = (uint8_t)flags, \
                               .site = site,            \
                               .begin = begin,          \
                               .end = end,              \
                               .comm = comm,            \
                               .peer = peer,            \
                               .tag = tag,              \
                               .request = request,      \
                               .bytes = bytes};         \
    record_put_otherwise(me, &event);                   \
  } while (0)

/* In what a shape is another one than this event's, which is of this thread. */
RECORD_INLINE uint64_t record_other_than(const RecordThread* me, const RecordShape* shape,
                                         unsigned kind, unsigned flags, uint32_t site,
                                         uint32_t comm, int peer, int tag, uint64_t bytes) {
  const RecordWord* const is = (const RecordWord*)shape;
  const uint64_t what = (uint64_t)site << 32 | (uint64_t)(uint8_t)flags << 24 |
                        (uint64_t)me->number << 16 | (uint16_t)kind;
  const uint64_t where = (uint64_t)(uint32_t)peer << 32 | comm, how = (uint32_t)tag;
  return (is[0] ^ what) | (is[1] ^ where) | (is[2] ^ how) | (is[3] ^ bytes);
}

/* An event. Its shape is looked for where the last time's was. */
RECORD_INLINE void record_put(RecordThread* me, unsigned kind, unsigned flags, uint32_t site,
                              uint64_t begin, uint64_t end, uint32_t comm, int peer, int tag,
                              uint32_t request, uint64_t bytes) {
  const unsigned at = me->behind[me->at];
  const uint64_t since = begin - me->before, took = end - begin;
  const uint32_t number = request ? request - me->requests : 0;
  RecordRow* const row = me->next;
  const uint64_t other =
      record_other_than(me, &me->shapes[at], kind, flags, site, comm, peer, tag, bytes) |
      (since | took) >> 16 | number >> 16 | me->off | (kind == RECORD_COMPLETION);
  if (__builtin_expect(other != 0 || end < me->last || row == me->limit || (request && !number),
                       0)) {
    RECORD_PUT_OTHERWISE();
  } else {
    row->since = (uint16_t)since;
    row->took = (uint16_t)took;
    row->shape = (uint16_t)at;
    row->request = (uint16_t)number;
    __atomic_store_n(&me->next, row + 1, __ATOMIC_RELEASE); /* as record_add_row does */
    me->before = begin;
    me->last = end;
    me->at = (uint16_t)at;
  }
  if (__builtin_expect(end >= record_next_switch, 0)) record_switch();
}

/* The same of a completion with the times of the event before it, and a request. */
RECORD_INLINE void record_put_more(RecordThread* me, unsigned kind, unsigned flags, uint32_t site,
                                   uint64_t begin, uint64_t end, uint32_t comm, int peer, int tag,
                                   uint32_t request, uint64_t bytes) {
  const unsigned at = me->behind[me->at];
  const uint32_t number = request - me->requests;
  RecordRow* const row = me->next;
  const uint64_t other =
      record_other_than(me, &me->shapes[at], kind, flags, site, comm, peer, tag, bytes) |
      (begin ^ me->before) | (end ^ me->last) | me->off | (kind != RECORD_COMPLETION);
  if (__builtin_expect(other != 0 || row == me->limit || number - 1u >= UINT16_MAX, 0)) {
    RECORD_PUT_OTHERWISE();
  } else {
    row->since = row->took = 0;
    row->shape = (uint16_t)at;
    row->request = (uint16_t)number;
    __atomic_store_n(&me->next, row + 1, __ATOMIC_RELEASE); /* as record_add_row does */
    me->at = (uint16_t)at;
  }
}

#endif
