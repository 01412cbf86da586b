/* layer_quick: the quick way of the calls that a program makes most often. A call from a place with
   arguments that were there before is known by a memo (recorder.h): it says of which shape its row
   is and what is counted, and a handle that comes again has its operation still in its slot
   (layer_tables.h). So nothing is looked for or put together, only compared; whatever is not as it
   was last time goes the way of layer_told.h, and is remembered there. Part of layer.c.
   Thread: any, as long as no two may be here at once (`several`); each has its own memos.
   Owner: the layer. Invariant: what is told is what layer_told.h would tell. */
#ifndef HEADWAY_RECORD_LAYER_QUICK_H
#define HEADWAY_RECORD_LAYER_QUICK_H

#include "layer_told.h"

#if defined(__x86_64__) || defined(__aarch64__)
enum { HAS_TICKS = 1 };
#else
enum { HAS_TICKS = 0 };
#endif
enum { OF_KIND = RECORD_EPOCH - 1 }; /* bits of a stamp */
_Static_assert((int)RECORD_FUNCTIONS < (int)RECORD_EPOCH, "a stamp has room for the kind");

/* Memos are only written where the clock is this one. */
ENTRY uint64_t quick_now(void) {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return record_now();
#endif
}

ENTRY RecordMemo* memo_at(RecordThread* me, const void* from, int peer, int tag) {
  return &me->memos[((unsigned)(uintptr_t)from + (unsigned)peer + (unsigned)tag) % RECORD_MEMOS];
}

/* Null: it is to go the other way. */
ENTRY RecordMemo* quick_memo(RecordThread* me, unsigned kind, const void* from, int peer, int tag) {
  if (__builtin_expect(!HAS_TICKS || !me || me->depth != 0, 0)) return NULL;
  RecordMemo* memo = memo_at(me, from, peer, tag);
  __asm__("" : "+r"(memo)); /* one address, and not put together anew for each of its fields */
  if (__builtin_expect(
          memo->stamp != me->epoch + kind || memo->from != (uintptr_t)from || memo->peer != peer,
          0))
    return NULL;
  return memo;
}

ENTRY bool is_message_of(const RecordMemo* memo, int count, MPI_Datatype type, int tag,
                         MPI_Comm comm) {
  return __builtin_expect(memo->count == count && memo->type == KEY(type) && memo->tag == tag &&
                              memo->comm == KEY(comm),
                          1);
}

/* False: something else is to be done first, on the other way. */
ENTRY bool quick_begin(RecordThread* me, const void* from, uint64_t begin) {
  if (__builtin_expect(begin >= me->until, 0)) return false;
  me->depth = 1;
  me->off = 0; /* a call that is not recorded may have left it */
  me->from = from;
  ++me->calls;
  return true;
}

/* A row at `row`; `number`: of its operation, less that of the block. The second half at once, as
   the machine has it: the numbers begin with their low bytes. */
ENTRY void quick_row(RecordRow* row, uint64_t since, uint64_t took, uint32_t shape,
                     uint32_t number) {
  const uint32_t what = number << 16 | shape;
  row->since = (uint16_t)since;
  row->took = (uint16_t)took;
  memcpy(&row->shape, &what, sizeof what);
}

/* Where the next row goes whose event has these times, with room for `more` behind it: behind one
   for what is above 16 bits of them, if anything is. Null: it goes the other way. */
__attribute__((noinline)) static RecordRow* far_row(RecordThread* me, uint64_t since, uint64_t took,
                                                    unsigned more) {
  RecordRow* const row = me->next;
  if ((since | took) >> 32 != 0 || row + 1 + more >= me->limit) return NULL;
  *row = (RecordRow){(uint16_t)(since >> 16), (uint16_t)(took >> 16), RECORD_FAR, 0};
  ++me->far_rows;
  return row + 1;
}
ENTRY RecordRow* next_row(RecordThread* me, uint64_t since, uint64_t took, unsigned more) {
  RecordRow* const row = me->next;
  if (__builtin_expect((since | took) >> 16 != 0, 0)) return far_row(me, since, took, more);
  return __builtin_expect(row + more >= me->limit, 0) ? NULL : row;
}

/* Behind them. */
ENTRY void quick_rows_end(RecordThread* me, RecordRow* next, uint64_t begin, uint64_t end) {
  __atomic_store_n(&me->next, next, __ATOMIC_RELEASE); /* as record_add_row does */
  me->before = begin;
  me->last = end;
}

/* ---- what is remembered ---- */

ENTRY bool is_of_epoch(const RecordThread* me, const RecordMemo* memo) {
  return memo->stamp - (memo->stamp & OF_KIND) == me->epoch;
}

/* What is above 32 bits of an event's times is its shape's: no other event is told by that one. */
static bool has_narrow_times(const RecordThread* me, unsigned shape) {
  return (me->shapes[shape].since | me->shapes[shape].took) == 0;
}

static uint64_t last_serial = NO_MEMO;

/* Where a call was told on the other way and is like most: its memo, to be filled in; null: it is
   not to be remembered, or not yet. What comes once from a place leaves another call's memo. */
static RecordMemo* new_memo(RecordThread* me, unsigned kind, uint32_t site, const void* from,
                            int count, uint64_t type, int peer, int tag, uint64_t comm) {
  /* The call itself may have been the first one beyond the end of what is recorded. */
  if (!HAS_TICKS || !clock_is_tsc || several || has_twins || cancels || me->off ||
      !record_wanted[kind] || me->at == RECORD_SHAPES || !has_narrow_times(me, me->at))
    return NULL;
  /* Neither of Fortran nor of Python: a memo's place says it all. */
  const uintptr_t at = (uintptr_t)from;
  if (record_is_of_mpi(at)) return NULL;
  const RecordKnownSite* known = &me->sites[(at ^ (at >> 8)) % RECORD_SITE_CACHE];
  if (known->address != at || known->id != site || site == 0) return NULL;
  RecordMemo* memo = memo_at(me, from, peer, tag);
  const bool is_same = memo->from == at && (memo->stamp & OF_KIND) == kind &&
                       memo->count == count && memo->type == type && memo->peer == peer &&
                       memo->tag == tag && memo->comm == comm;
  if (!is_same) {
    const uint32_t seen = (uint32_t)(((uint64_t)at ^ (uint64_t)(uint32_t)count ^ type ^ comm ^
                                      (uint64_t)(uint32_t)tag << 32 ^ (uint64_t)(uint32_t)peer) *
                                         0x9e3779b97f4a7c15u >>
                                     32);
    uint32_t* const last = &me->seen[memo - me->memos];
    if (*last != seen) {
      *last = seen;
      return NULL;
    }
  }
  *memo = (RecordMemo){.from = at,
                       .stamp = me->epoch + kind,
                       .count = count,
                       .type = type,
                       .comm = comm,
                       .peer = peer,
                       .tag = tag,
                       .site = site,
                       .shape = me->at,
                       .memo = memo,
                       .serial = ++last_serial};
  return memo;
}

/* Of a send or a receive that was told; `flags` say which. */
__attribute__((noinline)) static void remember_message(RecordThread* me, unsigned kind,
                                                       uint32_t site, const void* from, int rc,
                                                       unsigned flags, int count, MPI_Datatype type,
                                                       int peer, int tag, MPI_Comm comm) {
  if (several || rc != MPI_SUCCESS || peer < 0 || tag < 0 || count < 0) return;
  const uint64_t key = KEY(type);
  if ((known_types[(key ^ key >> 9) % KNOWN_TYPES] ^ key << SIZE_BITS) >= derived) return;
  const uint32_t where = id_of(comm);
  if (!where) return;
  RecordMemo* memo = new_memo(me, kind, site, from, count, key, peer, tag, KEY(comm));
  if (!memo) return;
  memo->flags = flags & UINT8_MAX;
  const Operation begun = {.kind = (uint16_t)kind,
                           .flags = (uint8_t)flags,
                           .active = true,
                           .comm = where,
                           .peer = peer,
                           .tag = tag,
                           .bytes = bytes_of(count, type)};
  memcpy(memo->operation, &begun.kind, sizeof memo->operation);
  memo->channel = channel_of(where, peer);
  memo->stamp = me->epoch + kind; /* the channel may have been new */
}

/* ---- MPI_Isend, MPI_Irecv ---- */

/* What has begun is not as it was last time. */
__attribute__((noinline)) static void begun_otherwise(RecordThread* me, RecordMemo* memo,
                                                      uint64_t begin, uint64_t end, int rc,
                                                      MPI_Request* request) {
  const unsigned kind = (unsigned)(memo->stamp & OF_KIND);
  const MPI_Comm comm = (MPI_Comm)(uintptr_t)memo->comm;
  const MPI_Datatype type = (MPI_Datatype)(uintptr_t)memo->type;
  const uint64_t bytes = rc == MPI_SUCCESS ? bytes_of(memo->count, type) : 0;
  me->off = 0;
  if (memo->flags & RECORD_SEND) {
    told_isend(me, kind, memo->site, begin, end, rc, memo->peer, memo->tag, bytes, comm, request);
  } else {
    told_irecv(me, kind, memo->site, begin, end, rc, memo->peer, memo->tag, bytes, comm, request);
  }
  record_leave(me);
}

/* One behind the other, so that little is held in registers. False: nothing is done yet. */
ENTRY bool is_told_quickly(RecordThread* me, RecordMemo* memo, bool is_send, uint64_t begin,
                           uint64_t end, int rc, const MPI_Request* request) {
  const uint64_t key = KEY(*request);
  if (__builtin_expect(rc != MPI_SUCCESS || *request == MPI_REQUEST_NULL, 0)) return false;
  Slot* const slot = &slots[place(key)];
  /* A handle with that low half was there last time, and what it stood for is over. */
  if (__builtin_expect((uint32_t)slot->key != (uint32_t)key || slot->last != 0, 0)) return false;
  const uint64_t since = begin - me->before, took = end - begin;
  const uint32_t id = last_id + 1, number = id - me->requests;
  if (__builtin_expect(number - 1 >= UINT16_MAX || end < me->last, 0)) return false;
  RecordRow* const row = next_row(me, since, took, 0);
  if (__builtin_expect(!row, 0)) return false;
  quick_row(row, since, took, memo->shape, number);
  quick_rows_end(me, row + 1, begin, end);
  last_id = id;
  slot->key = key;
  slot->last = slot->first;
  Operation* const operation = &operations[slot->first];
  operation->id = id;
  memcpy(&operation->kind, memo->operation, BEGUN_BYTES);
  if (is_send) {
    Channel* const to = memo->channel;
    const uint64_t tag = (uint32_t)memo->tag;
    to->out_tags += tag;
    to->out_squares += tag * tag;
    operation->number = (uint32_t)++to->out;
  }
  return true;
}

ENTRY void quick_begun(RecordThread* me, RecordMemo* memo, bool is_send, uint64_t begin,
                       uint64_t end, int rc, MPI_Request* request) {
  if (__builtin_expect(is_told_quickly(me, memo, is_send, begin, end, rc, request), 1)) {
    record_leave(me);
  } else {
    begun_otherwise(me, memo, begin, end, rc, request);
  }
}

/* ---- MPI_Wait, MPI_Waitall ---- */

/* An operation is over, and not as that of its memo was last time. */
__attribute__((noinline)) static void over_otherwise(RecordThread* me, const RecordMemo* wait,
                                                     unsigned kind, uint64_t begin, uint64_t end,
                                                     uint64_t key, const MPI_Status* status) {
  const Slot* slot = find_slot(key);
  const Operation* operation = &operations[slot ? slot->first : 0];
  RecordMemo* const memo = operation->memo;
  /* Of this thread. */
  const bool holds =
      memo >= me->memos && memo < me->memos + RECORD_MEMOS && memo->serial == operation->serial;
  me->off = 0;
  put_over(me, kind, wait->site, begin, end, MPI_SUCCESS, key, status, kind == RECORD_COMPLETION);
  if (!holds || bytes_at == NOWHERE || me->at == RECORD_SHAPES || !is_of_epoch(me, memo) ||
      !is_of_epoch(me, wait) || !has_narrow_times(me, me->at))
    return;
  memo->over = wait->serial;
  memo->over_shape = me->at;
  memo->over_bytes = me->shapes[me->at].bytes;
}

/* The same of one of those of MPI_Waitall, by its key and status. How many were done: all that are
   left, where memos name shapes of the last block by then. */
__attribute__((noinline)) static ptrdiff_t next_otherwise(RecordThread* me, const RecordMemo* wait,
                                                          uint64_t begin, uint64_t end,
                                                          const uint64_t* key,
                                                          const MPI_Status* status) {
  const ptrdiff_t left = me->now->keys + wait->peer - key;
  ptrdiff_t done = 0;
  do over_otherwise(me, wait, RECORD_COMPLETION, begin, end, key[done], &status[done]);
  while (++done < left && !is_of_epoch(me, wait));
  return done;
}

/* The row of an operation that is over, at `row`; false: nothing is done yet. */
ENTRY bool quick_over(const RecordThread* me, const RecordMemo* wait, uint64_t key,
                      const MPI_Status* status, RecordRow* row, uint64_t since, uint64_t took) {
  Slot* const slot = &slots[place(key)];
  const uint32_t at = slot->first;
  const Operation* const operation = &operations[at];
  const RecordMemo* const memo = operation->memo;
  const uint32_t number = operation->id - me->requests;
  if (__builtin_expect(slot->key != key || slot->last != at || memo->serial != operation->serial ||
                           memo->over != wait->serial || (number - 1) >> 16 != 0,
                       0))
    return false;
  if (memo->flags & RECORD_RECEIVE) {
    uint64_t bytes;
    if (__builtin_expect(!read_bytes(status, bytes_at, &bytes) || bytes != memo->over_bytes, 0))
      return false;
    Channel* const from = memo->channel;
    const uint64_t tag = (uint32_t)memo->tag;
    from->in_tags += tag;
    from->in_squares += tag * tag;
    ++from->in;
  }
  slot->last = 0;
  quick_row(row, since, took, memo->over_shape, number);
  return true;
}

/* A wait begins for so many requests, whose keys are there. */
ENTRY void quick_wait(RecordThread* me, const RecordMemo* memo, unsigned kind, uint64_t begin,
                      int count) {
  RecordWait* const wait = me->now;
  const uint64_t head = (uint64_t)memo->site << 32 | kind; /* no flags */
  wait->begin = begin;
  memcpy(&wait->kind, &head, sizeof head);
  wait->comm = 0;
  wait->requests = (uint32_t)count;
  begin_wait(wait);
}

/* False: one of them is of no request. At least one. */
ENTRY bool quick_keys(RecordThread* me, int count, const MPI_Request* requests) {
  uint64_t* key = me->now->keys;
  const MPI_Request* const end = requests + (unsigned)count;
  do {
    if (__builtin_expect(*requests == MPI_REQUEST_NULL, 0)) return false;
    *key++ = KEY(*requests);
  } while (++requests != end);
  return true;
}

/* What was waited for all is over, and the call's own row is not like most, or it has failed. */
__attribute__((noinline)) static void all_otherwise(RecordThread* me, const RecordMemo* memo,
                                                    uint64_t begin, uint64_t end, int rc,
                                                    const MPI_Request* requests,
                                                    const MPI_Status* statuses) {
  uint64_t* const few = me->now->keys;
  me->off = 0;
  Keys keys = {.count = memo->peer, .asked = memo->peer, .there = memo->peer, .keys = few};
  told_all(me, (unsigned)(memo->stamp & OF_KIND), memo->site, begin, end, rc, 1, &keys, requests,
           statuses);
}

ENTRY void quick_all_over(RecordThread* me, RecordMemo* memo, uint64_t begin, uint64_t end, int rc,
                          int count, const MPI_Request* requests, const MPI_Status* statuses) {
  const uint64_t since = begin - me->before, took = end - begin;
  RecordRow* row = NULL;
  if (__builtin_expect(rc == MPI_SUCCESS && end >= me->last, 1))
    row = next_row(me, since, took, (unsigned)count);
  if (__builtin_expect(!row, 0)) {
    all_otherwise(me, memo, begin, end, rc, requests, statuses);
  } else {
    quick_row(row++, since, took, memo->shape, 0);
    me->before = begin;
    me->last = end;
    const uint64_t *key = me->now->keys, *const keys_end = key + (unsigned)count;
    do {
      if (__builtin_expect(quick_over(me, memo, *key, statuses, row, 0, 0), 1)) {
        ++row;
        ++statuses;
        ++key;
      } else {
        __atomic_store_n(&me->next, row, __ATOMIC_RELEASE);
        const ptrdiff_t done = next_otherwise(me, memo, begin, end, key, statuses);
        row = me->next;
        statuses += done;
        key += done;
      }
    } while (key != keys_end);
    __atomic_store_n(&me->next, row, __ATOMIC_RELEASE);
  }
  end_blocking(me, begin, end);
  record_leave(me);
}

ENTRY void quick_one_over(RecordThread* me, RecordMemo* memo, unsigned kind, uint64_t begin,
                          uint64_t end, int rc, const MPI_Status* status) {
  const uint64_t since = begin - me->before, took = end - begin, key = me->now->keys[0];
  if (__builtin_expect(rc != MPI_SUCCESS, 0)) {
    me->off = 0;
    put_completed(me, kind, memo->site, begin, end, rc, key, status);
  } else {
    RecordRow* const row = end >= me->last ? next_row(me, since, took, 0) : NULL;
    if (__builtin_expect(row && quick_over(me, memo, key, status, row, since, took), 1)) {
      quick_rows_end(me, row + 1, begin, end);
    } else {
      me->far_rows -= row && row != me->next; /* one that is written over */
      over_otherwise(me, memo, kind, begin, end, key, status);
    }
  }
  end_blocking(me, begin, end);
  record_leave(me);
}

/* Of a call on requests that was told: `many` of them, each of an operation; `shape`: of its own
   row, in this epoch if that is `epoch`. */
__attribute__((noinline)) static void remember_wait(RecordThread* me, unsigned kind, uint32_t site,
                                                    const void* from, int rc, int64_t many,
                                                    unsigned shape, uint64_t epoch) {
  if (rc != MPI_SUCCESS || many < 1 || many > FEW || epoch != me->epoch || shape >= RECORD_SHAPES ||
      !has_narrow_times(me, shape))
    return;
  RecordMemo* memo = new_memo(me, kind, site, from, 0, 0, (int)many, 0, 0);
  if (memo) memo->shape = shape;
}

#endif
