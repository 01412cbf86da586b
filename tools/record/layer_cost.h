/* layer_cost: what recording a call takes on this machine, measured once, when MPI was initialized:
   the three calls of a message (MPI_Irecv, MPI_Isend, MPI_Waitall of both) are recorded as their
   entries do it, without a call of MPI, from the place that called MPI_Init. Not in it: what is
   timed when it is done (blocks that are written, looks at the run delay). In a loop that does
   nothing else, whose data are in the caches, it is the least; behind a walk through other
   memory, which leaves little of them in the nearest caches, it is what is told as the most; a
   program may leave them colder still. Part of layer.c.
   Thread: that which initializes MPI, while no other one may be in MPI. Owner: the layer.
   Invariant: nothing of it stays: no record, no operation, no count. */
#ifndef HEADWAY_RECORD_LAYER_COST_H
#define HEADWAY_RECORD_LAYER_COST_H

#include "layer_quick.h"

enum {
  COST_BATCHES = 9,
  COST_MESSAGES = 60, /* of a batch */
  COST_CALLS = 3,     /* of a message */
  COST_EVENTS = 5,
  COST_OTHER = 1 << 20, /* bytes, of a program's own data between two messages */
  COST_LINE = 64,
  COST_SPARE_BITS = 2
};

static bool begin_message(const void* from, unsigned kind, int peer, MPI_Request* request) {
  RecordThread* me = record_me;
  RecordMemo* const memo = quick_memo(me, kind, from, peer, 1);
  if (memo && is_message_of(memo, 8, MPI_BYTE, 1, MPI_COMM_SELF)) {
    const uint64_t begin = quick_now();
    if (quick_begin(me, from, begin)) {
      quick_begun(me, memo, kind == K_MPI_Isend, begin, quick_now(), MPI_SUCCESS, request);
      return true;
    }
  }
  me = record_enter(kind);
  if (!me) return false;
  me->off = 0; /* also where these calls are not wanted */
  const uint32_t site = record_site(me, me->from = from);
  const uint64_t begin = record_now(), end = record_now();
  if (kind == K_MPI_Isend) {
    told_isend(me, kind, site, begin, end, MPI_SUCCESS, peer, 1, bytes_of(8, MPI_BYTE),
               MPI_COMM_SELF, request);
  } else {
    told_irecv(me, kind, site, begin, end, MPI_SUCCESS, peer, 1, bytes_of(8, MPI_BYTE),
               MPI_COMM_SELF, request);
  }
  remember_message(me, kind, site, from, MPI_SUCCESS,
                   kind == K_MPI_Isend ? RECORD_SEND : RECORD_RECEIVE, 8, MPI_BYTE, peer, 1,
                   MPI_COMM_SELF);
  record_leave(me);
  return true;
}

static bool end_message(const void* from, MPI_Request* requests, MPI_Status* statuses) {
  enum { BOTH = 2 };
  RecordThread* me = record_me;
  RecordMemo* const memo = quick_memo(me, K_MPI_Waitall, from, BOTH, 0);
  if (memo && quick_keys(me, BOTH, requests)) {
    const uint64_t begin = quick_now();
    if (quick_begin(me, from, begin)) {
      quick_wait(me, memo, K_MPI_Waitall, begin, BOTH);
      const uint64_t end = quick_now();
      wait_is_over(me);
      quick_all_over(me, memo, begin, end, MPI_SUCCESS, BOTH, requests, statuses);
      return true;
    }
  }
  me = record_enter(K_MPI_Waitall);
  if (!me) return false;
  me->off = 0;
  const uint32_t site = record_site(me, me->from = from);
  Keys keys;
  copy_keys(me, &keys, BOTH, requests);
  MPI_Status* const st = room_for(&keys, statuses);
  const uint64_t begin = begin_blocking(me);
  wait_for_requests(me, K_MPI_Waitall, site, BOTH);
  const uint64_t end = record_now();
  wait_is_over(me);
  told_all(me, K_MPI_Waitall, site, begin, end, MPI_SUCCESS, 1, &keys, requests, st);
  free_keys(&keys);
  remember_wait(me, K_MPI_Waitall, site, from, MPI_SUCCESS, BOTH, keys.shape, keys.epoch);
  end_blocking(me, begin, end);
  record_leave(me);
  return true;
}

/* With two partners, so that each call has a memo of its own, as calls from three places have. */
static bool record_message(const void* from, MPI_Request* requests, MPI_Status* statuses) {
  return begin_message(from, K_MPI_Irecv, 0, &requests[0]) &&
         begin_message(from, K_MPI_Isend, 2, &requests[1]) && end_message(from, requests, statuses);
}

static int compare_ticks(const void* one, const void* other) {
  const uint64_t a = *(const uint64_t*)one, b = *(const uint64_t*)other;
  return a < b ? -1 : a > b;
}

/* Takes the caches of a core from what lies in them, code too: twice, as a line that was used
   before outlives others. */
static void walk_through(volatile char* other) {
  for (size_t at = 0; other && at < 2 * COST_OTHER; at += COST_LINE) ++other[at % COST_OTHER];
}

/* Ticks of a call, of some batches of so many messages: the median; of those behind a walk through
   `other` the upper quartile. 0: recording is off. */
static double ticks_of_batches(RecordThread* me, int messages, volatile char* other) {
  RecordRow* const next = me->next;
  const void* const from = me->from;
  MPI_Request requests[2]; /* no MPI has these */
  MPI_Status statuses[2];
  memset(&requests[0], 0x5a, sizeof requests[0]);
  memset(&requests[1], 0x5b, sizeof requests[1]);
  memset(statuses, 0, sizeof statuses);
  uint64_t took[COST_BATCHES];
  bool recorded = true;
  for (int batch = 0; batch < COST_BATCHES; ++batch) {
    me->next = next;
    me->last_block = record_now(); /* so that no block is written: there is no file yet */
    record_set_until(me);
    walk_through(other);
    const uint64_t begin = record_now();
    for (int i = 0; i < messages; ++i)
      recorded = recorded && record_message(from, requests, statuses);
    took[batch] = record_now() - begin;
  }
  qsort(took, COST_BATCHES, sizeof *took, compare_ticks);
  const uint64_t chosen = took[other ? COST_BATCHES * 3 / 4 : COST_BATCHES / 2];
  return recorded ? (double)chosen / (messages * COST_CALLS) : 0;
}

static RecordCallTicks ticks_of_call(RecordThread* me) {
  RecordCallTicks found = {.least = ticks_of_batches(me, COST_MESSAGES, NULL)};
  char* const other = mmap(NULL, COST_OTHER, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (other != MAP_FAILED) {
    found.most = ticks_of_batches(me, 1, other);
    munmap(other, COST_OTHER);
  }
  if (found.most < found.least) found.most = found.least;
  return found;
}

/* `me` is in MPI_Init. */
static RecordCallTicks measure_call(RecordThread* me) {
  static Channel spare[1 << COST_SPARE_BITS];
  enum { NEEDED = 2 * COST_EVENTS * COST_MESSAGES + 64 };
  if (me->vain.count || me->limit - me->next < NEEDED) return (RecordCallTicks){0};
  RecordRow* const next = me->next;
  const uint64_t before = me->before, last = me->last, first = me->first, calls = me->calls;
  const uint32_t shapes = me->shape_count, numbers = me->requests, far_rows = me->far_rows;
  const uint16_t shape = me->at;
  const void* const from = me->from;
  const uint64_t last_block = me->last_block;
  const uint32_t id = last_id;
  const uint8_t off = (uint8_t)me->off;
  Channel* const counts = channels;
  const unsigned bits = channel_bits, shift = channel_shift;
  const size_t used = channel_used;
  const int at = bytes_at;
  bytes_at = bytes_may_be_at; /* as it will be soon */
  channels = spare;
  channel_bits = COST_SPARE_BITS;
  channel_shift = 64 - COST_SPARE_BITS;
  channel_used = 0;

  me->depth = 0;
  const RecordCallTicks found = ticks_of_call(me);
  me->depth = 1;
  me->off = off;
  me->from = from;
  me->next = next;
  me->before = before;
  me->last = last;
  me->first = first;
  me->calls = calls;
  me->shape_count = shapes;
  me->far_rows = far_rows;
  me->requests = numbers;
  me->at = shape;
  me->last_block = last_block;
  last_id = id;
  channels = counts;
  channel_bits = bits;
  channel_shift = shift;
  channel_used = used;
  bytes_at = at;
  record_set_until(me);
  record_forget_memos();
  if (slot_count) grow_slots(); /* without those of these operations */
  return found;
}

#endif
