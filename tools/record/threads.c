/* threads: see threads.h. */
#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "delay.h"
#include "file.h"
#include "library_events.h"
#include "lock.h"
#include "rows.h"
#include "shared_now.h"
#include "sites.h"
#include "switches.h"

enum { MOST_THREADS = 255 };

RECORD_API __thread RecordThread* record_me __attribute__((tls_model("initial-exec")));

static struct {
  RecordThread* threads;
  RecordThread*
      spare;      /* of threads that have ended, all 0: operations may still name their memos */
  unsigned count; /* that there ever were */
  uint64_t timed; /* of those that have ended */
  pthread_key_t key;
} self;

/* ---- buffers ---- */

/* Locked. */
static void put_rows(const RecordThread* me) {
  const RecordBlockHead head = record_head_of(me);
  record_put_names(); /* also of communicators whose calls are not recorded */
  if (head.events) record_put_rows(me, &head);
}

/* Locked. Before the file is there (MPI_Init has not returned) what does not fit is lost. */
static void put_or_lose(RecordThread* me) {
  const bool any = me->next != me->rows;
  if (record_may_write()) {
    put_rows(me);
  } else if (!record_over) {
    record_count_lost(record_head_of(me).events);
  }
  if (!any) return; /* a call that has begun counts in the block of its events */
  me->calls = 0;
  record_empty_rows(me);
}

void record_write(RecordThread* me) {
  const uint64_t begin = record_now();
  record_lock();
  put_or_lose(me);
  if (record_may_write()) record_put_library();
  me->last_block = record_now();
  me->timed += me->last_block - begin;
  record_unlock();
  record_set_until(me);
}

void record_set_until(RecordThread* me) {
  const uint64_t block = me->last_block + record_spans.block;
  const uint64_t look = me->delay_read + record_spans.apart;
  const uint64_t due = block < look ? block : look;
  /* Before tests that found nothing are told, no other call is. */
  me->long_wait = record_spans.wait;
  me->until = me->vain.count ? 0 : due < record_next_switch ? due : record_next_switch;
}

uint64_t record_due(RecordThread* me, uint64_t now) {
  uint64_t begin = now;
  if (now - me->last_block > record_spans.block) record_write(me);
  if (now - me->delay_read > record_spans.apart) {
    record_look_at_delay(me, now, now, 0);
    begin = record_now();
  }
  record_set_until(me);
  return begin;
}

void record_forget_memos_locked(void) {
  for (RecordThread* thread = self.threads; thread; thread = thread->other)
    __atomic_fetch_add(&thread->epoch, RECORD_EPOCH, __ATOMIC_RELAXED);
}

void record_forget_memos(void) {
  record_lock();
  record_forget_memos_locked();
  record_unlock();
}

uint64_t record_timed(void) {
  uint64_t ticks = self.timed;
  for (const RecordThread* thread = self.threads; thread; thread = thread->other)
    ticks += thread->timed;
  return ticks;
}

static RecordEvent event_of(const RecordThread* me, const RecordVain* vain) {
  return (RecordEvent){.kind = vain->kind,
                       .thread = me->number,
                       .flags = RECORD_IN_VAIN,
                       .site = vain->site,
                       .begin = vain->begin,
                       .end = vain->end,
                       .peer = RECORD_NONE,
                       .tag = (int32_t)vain->count,
                       .bytes = vain->inside};
}

static void add(RecordThread* me, const RecordEvent* event) {
  if (record_add_row(me, event)) return;
  record_write(me);
  if (record_add_row(me, event)) return;
  record_lock(); /* its times are wrong */
  record_count_lost(1);
  record_unlock();
}

void record_write_vain(RecordThread* me) {
  const RecordEvent event = event_of(me, &me->vain);
  me->vain.count = 0;
  add(me, &event);
  record_set_until(me);
}

void record_put_otherwise(RecordThread* me, const RecordEvent* event) {
  if (me->off) return;
  if (me->vain.count) record_write_vain(me);
  add(me, event);
}

void record_flush(void) {
  RecordThread* me = record_me;
  if (!me) return;
  if (me->vain.count) record_write_vain(me);
  record_write(me);
}

void record_write_all(void) {
  /* Others may still be in a call, and put records: nothing of theirs is touched, only read. */
  for (RecordThread* thread = self.threads; thread; thread = thread->other) {
    put_rows(thread);
    const RecordVain vain = thread->vain;
    if (vain.count) {
      const RecordEvent event = event_of(thread, &vain);
      record_put_events(thread->number, &event, 1);
    }
  }
  record_put_library();
}

void record_put_gap(uint64_t begin, uint64_t end) {
  RecordThread* me = record_me;
  if (!me) return;
  const RecordEvent event = {.kind = RECORD_GAP,
                             .thread = me->number,
                             .begin = begin,
                             .end = end,
                             .peer = RECORD_NONE,
                             .tag = RECORD_NONE};
  if (record_add_row(me, &event)) return;
  put_or_lose(me);
  if (!record_add_row(me, &event)) record_count_lost(1);
}

/* ---- their life ---- */

static void thread_ends(void* thread) {
  RecordThread* me = thread;
  if (me->vain.count) record_write_vain(me);
  record_write(me);
  record_close_delay(me);
  record_lock();
  record_give_wait(me->now);
  self.timed += me->timed;
  RecordThread** link = &self.threads;
  while (*link && *link != me) link = &(*link)->other;
  if (*link) *link = me->other;
  /* Locked memory stays. */
  if (madvise(me, sizeof *me, MADV_DONTNEED) != 0) memset(me, 0, sizeof *me);
  me->other = self.spare;
  self.spare = me;
  record_unlock();
  record_me = NULL;
}

/* All 0, in pages of its own: our library may close those of the program's heap, and asks here,
   with its engine held, which thread it is. */
static RecordThread* room_for_thread(void) {
  record_lock();
  RecordThread* found = self.spare;
  if (found) self.spare = found->other;
  record_unlock();
  if (!found) {
    void* made =
        mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return made == MAP_FAILED ? NULL : made;
  }
  found->other = NULL;
  return found;
}

unsigned record_take_number(void) {
  const unsigned number = self.count < MOST_THREADS ? self.count : MOST_THREADS;
  ++self.count;
  return number;
}

RecordThread* record_enter_otherwise(unsigned kind) {
  if (!record_live) return NULL;
  RecordThread* me = record_me ? record_me : record_first_call();
  if (me == NULL || me->depth != 0) return NULL;
  uint8_t wanted = record_wanted[kind];
  if (!wanted && record_now() >= record_next_switch) {
    record_switch();
    wanted = record_wanted[kind];
  }
  me->depth = 1;
  me->off = !wanted;
  me->calls += wanted;
  return me;
}

RecordThread* record_first_call(void) {
  if (!record_enabled) return NULL;
  RecordThread* me = room_for_thread();
  if (!me) return NULL;
  record_empty_rows(me);
  me->last_block = record_now();
  record_set_until(me);
  record_open_delay(me);
  record_lock();
  if (self.threads == NULL && self.count == 0) {
    pthread_key_create(&self.key, thread_ends);
    record_start_now();
  }
  me->now = record_take_wait(&me->alone);
  me->number = (uint8_t)record_take_number();
  me->other = self.threads;
  self.threads = me;
  record_unlock();
  pthread_setspecific(self.key, me);
  record_me = me;
  return me;
}
