/* library_events: see library_events.h. */
#define _GNU_SOURCE
#include "library_events.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/event_sink.h"
#include "file.h"
#include "lock.h"
#include "threads.h"

enum {
  ROOM = 1 << 13, /* events that wait to be written */
  MANY = ROOM / 2,
  EVENTS_OF_A_BLOCK = 512,
  FIRST_KIND = 0x8010,
  WORLD = 1
};
/* Of the file: what the library did with the program's memory, and the work of its thread. */
enum Track { PAGES, MESSAGE_THREAD, TRACKS };
static const char* const titles[TRACKS] = {"library", "message thread"};

/* Who puts an event takes a slot by its number, fills it and then marks it. A mark is 2n where the
   slot is free for the n-th lap of the ring, and 2n + 1 where it was filled in it. */
typedef struct Slot {
  _Atomic uint64_t mark;
  struct HeadwayEvent event;
} Slot;

typedef struct Batch { /* of one track, on its way to the file */
  unsigned thread;
  size_t count;
  RecordEvent events[EVENTS_OF_A_BLOCK];
} Batch;

static struct {
  int (*tell)(uint32_t version, const struct HeadwayEventSink* sink); /* null: another MPI */
  bool wanted, named;
  Slot* ring; /* stays for ever: somebody may be putting an event when nobody listens any more */
  _Atomic uint64_t put, taken, lost;
  Batch batches[TRACKS];
} self;

/* ---- the sink: on any thread, in any state ---- */

static uint64_t tell_now(void) { return record_now(); }

/* Its memory is none of malloc's, so that it never lies in a closed page (threads.c). */
static uint8_t tell_thread(void) {
  return record_me ? record_me->number : (uint8_t)headway_no_thread;
}

static void lose_event(void) { atomic_fetch_add_explicit(&self.lost, 1, memory_order_relaxed); }

static void put_event(const struct HeadwayEvent* event) {
  uint64_t at = atomic_load_explicit(&self.put, memory_order_relaxed);
  for (;;) {
    Slot* slot = &self.ring[at % ROOM];
    const uint64_t is_free = at / ROOM * 2;
    /* Pairs with record_put_library: what was there has been read. */
    const uint64_t mark = atomic_load_explicit(&slot->mark, memory_order_acquire);
    if (mark < is_free) {
      lose_event();
      return;
    }
    if (mark > is_free) {
      at = atomic_load_explicit(&self.put, memory_order_relaxed); /* somebody else had it */
    } else if (atomic_compare_exchange_weak_explicit(&self.put, &at, at + 1, memory_order_relaxed,
                                                     memory_order_relaxed)) {
      slot->event = *event;
      /* Pairs with record_put_library. */
      atomic_store_explicit(&slot->mark, is_free + 1, memory_order_release);
      break;
    }
  }
  /* The next call that is recorded writes them: it looks whether recording goes on or off. */
  const uint64_t taken = atomic_load_explicit(&self.taken, memory_order_relaxed);
  if (at >= taken && at - taken >= MANY) /* else it was taken already */
    __atomic_store_n(&record_next_switch, 0, __ATOMIC_RELAXED);
}

static const struct HeadwayEventSink sink = {tell_now, tell_thread, put_event, lose_event};

/* ---- the file ---- */

/* Behind the numbers of the threads that have called until now: the first one's is 0. */
static void put_titles(void) {
  char text[128];
  self.named = true;
  for (int track = 0; track < TRACKS; ++track) self.batches[track].thread = record_take_number();
  const int length = snprintf(text, sizeof text,
                              "[{\"thread\":%u,\"name\":\"%s\"},{\"thread\":%u,\"name\":\"%s\"}]",
                              self.batches[PAGES].thread, titles[PAGES],
                              self.batches[MESSAGE_THREAD].thread, titles[MESSAGE_THREAD]);
  record_put_block(RECORD_THREADS, 0, text, (size_t)length, 0, 0);
}

static void write_batch(Batch* batch) {
  if (batch->count) record_put_events(batch->thread, batch->events, batch->count);
  batch->count = 0;
}

static void keep(const struct HeadwayEvent* event) {
  Batch* batch = &self.batches[event->kind == headway_event_help ? MESSAGE_THREAD : PAGES];
  if (batch->count == EVENTS_OF_A_BLOCK) write_batch(batch);
  const uint64_t spared_us = (event->spared_ns + 500) / 1000;
  const bool is_prefetch = event->kind == headway_event_prefetch;
  batch->events[batch->count++] = (RecordEvent){
      .kind = (uint16_t)(FIRST_KIND + event->kind),
      .thread = (uint8_t)batch->thread,
      .begin = event->begin,
      .end = event->end,
      .comm = event->peer < 0 ? 0 : WORLD,
      .peer = event->peer < 0 ? RECORD_NONE : event->peer,
      .tag = event->thread == headway_no_thread ? RECORD_NONE : event->thread,
      .request = !is_prefetch             ? event->closing
                 : spared_us < UINT32_MAX ? (uint32_t)spared_us
                                          : UINT32_MAX,
      .bytes = event->bytes,
  };
}

void record_put_library(void) {
  if (!self.ring) return;
  uint64_t at = atomic_load_explicit(&self.taken, memory_order_relaxed);
  const uint64_t from = at;
  for (; at - from < ROOM; ++at) {
    Slot* slot = &self.ring[at % ROOM];
    const uint64_t is_full = at / ROOM * 2 + 1;
    /* Pairs with put_event. */
    if (atomic_load_explicit(&slot->mark, memory_order_acquire) != is_full) break;
    if (!self.named) put_titles();
    keep(&slot->event);
    atomic_store_explicit(&slot->mark, is_full + 1, memory_order_release);
  }
  if (at == from) return;
  atomic_store_explicit(&self.taken, at, memory_order_relaxed);
  for (int track = 0; track < TRACKS; ++track) write_batch(&self.batches[track]);
}

uint64_t record_library_lost(void) {
  return atomic_load_explicit(&self.lost, memory_order_relaxed);
}

/* ---- whether ---- */

void record_want_library(bool wanted) {
  self.wanted = wanted;
  if (self.tell) self.tell(headway_events_version, wanted ? &sink : NULL);
}

void record_find_library(void* mpi) {
  int (*tell)(uint32_t, const struct HeadwayEventSink*);
  *(void**)&tell = dlsym(mpi, "headway_tell_events");
  if (!tell) return;
  void* ring =
      mmap(NULL, ROOM * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ring == MAP_FAILED) return;
  record_lock();
  self.ring = ring;
  self.tell = tell;
  record_want_library(self.wanted);
  record_unlock();
}
