/* try: a run that carries out a piece of advice (`headway advise --try`), or the unchanged one
   beside it. Two objects, as for a recording: libtrying (this interface; preloaded, knows no MPI),
   which has the plan, the pages of sends that are put off, the heap and the calls of the C library
   that may touch those; and one layer for each MPI's ABI (layer.c, compiled with that MPI's mpicc),
   which librecorder loads in the place of its own. docs/trying-advice.md says what is done.

   Thread: any, told below. "The program's thread" is the one that the process began with; sends
   are put off only while the program has no other one. Owner: libtrying, for the process's life.
   Invariants: no byte of a send that is put off changes before that send is over. What cannot be
   watched is not put off. */
#ifndef HEADWAY_TRY_H
#define HEADWAY_TRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRY_API __attribute__((visibility("default")))
#define TRY_HIDDEN __attribute__((visibility("hidden")))

/* ---- the plan ---- */

enum TryMode {
  TRY_UNCHANGED, /* everything but the change: own pages for the heap, times */
  TRY_PUT_OFF,
  TRY_TEST
};

typedef struct TryPlan {
  enum TryMode mode;
  bool there; /* this process has one */
  bool hash;  /* what is received */
  uint64_t period;
  int count; /* tests in a stretch, `period` ns apart */
} TryPlan;
extern TRY_API TryPlan try_plan;

enum { TRY_SITE = 1, TRY_OTHER = 2 };
/* Whether that return address is the call of the advice, and its other one. */
TRY_API int try_spot(uintptr_t address);
/* A number for all return addresses of sends that are one call to the user, of those that the plan
   names; of others the address itself. */
TRY_API uintptr_t try_line(uintptr_t address);

/* ---- what came of it ---- */

/* In the order of try_end_names (plan.c). */
enum TryEnd {
  TRY_AT_WAIT,    /* a wait for receives: where the advice puts it */
  TRY_AT_WRITE,   /* its buffer was written */
  TRY_AT_BESIDE,  /* something else on its pages was */
  TRY_AT_FREE,    /* the block was freed, or its mapping changed */
  TRY_AT_CALL,    /* the C library was to write there */
  TRY_AT_SEND,    /* the same call sent again, to the same rank with the same tag */
  TRY_AT_RECEIVE, /* a receive into these pages */
  TRY_AT_OTHER,   /* another call of MPI: a collective, for example */
  TRY_AT_END,     /* MPI_Finalize, or exit */
  TRY_ENDS
};

/* Why a wait stays where it stands; in the order of try_refusal_names (plan.c). */
enum TryRefusal {
  TRY_MAY,
  TRY_KIND, /* not of MPI_Isends alone */
  TRY_SMALL,
  TRY_STACK,
  TRY_UNKNOWN,   /* neither from malloc nor static */
  TRY_RECEIVING, /* a receive under way touches these pages */
  TRY_THREADS,
  TRY_BLOCKED,    /* SIGSEGV */
  TRY_ONE_SIDED,  /* writers that are not seen: windows, */
  TRY_PERSISTENT, /* persistent collectives and partitioned receives, */
  TRY_FILE,       /* non-blocking reads of files, */
  TRY_COLLECTIVE, /* a non-blocking collective under way, */
  TRY_FREED,      /* a receive whose request was freed */
  TRY_PROTECTS,   /* somebody else follows writes by making pages read-only */
  TRY_SPAWNED,
  TRY_SESSIONS, /* MPI was begun by sessions alone */
  TRY_FULL,     /* too many at once, or the system has no room for more mappings */
  TRY_REFUSALS
};

typedef struct TryCounts {
  uint64_t reached; /* sends that came to the call of the advice */
  uint64_t at_once; /* of these: they were over, nothing had to be put off */
  uint64_t put_off;
  uint64_t ended[TRY_ENDS], refused[TRY_REFUSALS];
  uint64_t stretches, tests;
  uint64_t watching; /* ns, for making pages read-only and writable: an edited program does not */
} TryCounts;
extern TRY_API TryCounts try_counts; /* the program's thread; `tests` the testing one's */

/* A row of messages of one communicator, source and tag; or of collectives, by the source below. */
enum { TRY_COLLECTIVES = -1000000 };
typedef struct TryChannel {
  uint32_t comm, taken; /* comm: numbered from 1 as this rank first used them; 0 unknown */
  int32_t source, tag;
  uint64_t count, sum, weight;
} TryChannel;

/* MPI has begun: time runs. */
TRY_API void try_begin(int rank, int size);
/* Is about to end: what came of it, to this rank's file. Unchanged if that was done already. */
TRY_API void try_finish(const TryChannel* channels, size_t count);
/* Ends the process: going on could change what the program does. `why` goes to its file. */
TRY_API void try_give_up(const char* why) __attribute__((noreturn));

/* ---- sends that are put off ---- */

typedef struct TryRange { /* of addresses; empty if begin == end */
  uintptr_t begin, end;
} TryRange;

typedef struct TryEnvelope { /* of a send: its call, and to whom */
  uintptr_t site;
  uintptr_t line; /* of that: try_line */
  uint64_t comm;
  int dest, tag;
} TryEnvelope;

enum { TRY_REQUEST = 16 };
typedef struct TryRequest { /* an MPI_Request */
  _Alignas(16) unsigned char bytes[TRY_REQUEST];
} TryRequest;

/* The layer's: waits for that one. Not 0: MPI returned an error. */
typedef int TryWait(TryRequest* request);

/* How deep this thread is in MPI, in the layer or in what is here. */
extern TRY_API __thread int try_depth __attribute__((tls_model("initial-exec")));
extern TRY_API int try_count;    /* sends that are put off now */
extern TRY_API bool try_touched; /* a page of one was opened inside MPI */
/* This thread's call is in Fortran (librecorder's, see recorder.h). */
extern __thread uintptr_t record_fortran_caller __attribute__((tls_model("initial-exec")));
uintptr_t record_fortran_from(uintptr_t from);

/* `library`: any address of the MPI library's code. */
TRY_API void try_start_pages(TryWait* wait, const void* library);
/* Why the pages of that buffer cannot be watched; TRY_MAY if they can. */
TRY_API enum TryRefusal try_why_not(TryRange bytes);
/* From now on its buffer is watched. False: it is not, wait for it. */
TRY_API bool try_put_off(TryRange bytes, const TryEnvelope* envelope, const TryRequest* request);
/* By the layer, before or behind a call of MPI. Those that are meant are over then. */
TRY_API void try_end_all(enum TryEnd why);
TRY_API void try_end_pages(TryRange bytes, enum TryEnd why);
TRY_API void try_end_same(const TryEnvelope* envelope);
TRY_API void try_end_touched(void);
TRY_API bool try_shares_pages(TryRange one, TryRange other);

static inline void try_leave(void) {
  if (__builtin_expect(try_touched, 0)) try_end_touched();
  try_depth = 0;
}

/* ---- between the parts of libtrying ---- */

/* By whoever is about to write there, or to change those pages, on any thread. */
TRY_HIDDEN void try_before_write(const void* at, size_t bytes, enum TryEnd why);
TRY_HIDDEN void try_before_handler(void); /* the program sets or asks for one of SIGSEGV */
TRY_HIDDEN extern bool try_threads;       /* the program has other threads */
TRY_HIDDEN extern bool try_started;       /* what comes before is the program's libraries' */
TRY_HIDDEN extern __thread bool try_is_programs __attribute__((tls_model("initial-exec")));
/* Somebody changes how memory may be used. */
TRY_HIDDEN void try_note_protection(const void* at, int how);
/* What an exit must not lose. */
TRY_HIDDEN void try_before_exit(void);
TRY_HIDDEN uint64_t try_now(void); /* ns */
/* Who writes, as a return address; into a buffer or beside one. */
TRY_HIDDEN void try_note_write(uintptr_t from, bool beside);
/* A block of the heap that has pages of its own and holds that range. */
TRY_HIDDEN bool try_is_heap(TryRange bytes);
TRY_HIDDEN void* try_next(const char* name); /* that function of the C library, or behind us */

#endif
