/* layer_now: what others see of this rank (now.h): by communicator and process how many messages
   were begun to it and have come from it, how many collectives were begun, and what a call that
   may take long waits for. Part of layer.c. Thread: any; the counts one at a time (`lock`), a wait
   its own thread's. Owner: the layer. Invariant: whatever a count missed, `odd` says that it did.
 */
#ifndef HEADWAY_RECORD_LAYER_NOW_H
#define HEADWAY_RECORD_LAYER_NOW_H

#include "layer_tables.h"

/* ---- channels ---- */

/* Between this process and one of a communicator. Of the tags there are the sum and the sum of the
   squares: what is sent less what has come tells of a few messages under way, or of many with one
   tag, which tags they have, without a table of tags. docs/recording-format.md has it. */
typedef struct Channel {
  uint64_t key; /* communicator << 32 | process; 0: empty */
  uint64_t out, out_tags, out_squares;
  uint64_t in, in_tags, in_squares;
  uint64_t reserved;
} Channel;
/* The place of a communicator itself: collectives that were begun on it; of the last one its
   function and its root; whether it was freed. */
enum { ITSELF = -1 };
#define COLLECTIVES out
#define LAST_KIND out_tags
#define LAST_ROOT out_squares
#define IS_FREED reserved
_Static_assert(sizeof(Channel) == 64, "as documented");

enum { FIRST_CHANNELS_BITS = 8, MOST_CHANNELS_BITS = 22 };
static Channel no_channels[2]; /* no communicator is 0: none is found in it */
static Channel* channels = no_channels;
static unsigned channel_bits = 1, channel_shift = 63; /* 64 together */
static size_t channel_used;
static uint64_t channels_at;

static void note_odd(void) { record_now_page->odd = 1; }

ENTRY size_t place_of_channel(uint64_t key, unsigned shift) {
  return (size_t)((key * 0x9e3779b97f4a7c15u) >> shift);
}

static Channel* slot_of_channel(Channel* all, unsigned bits, uint64_t key) {
  const size_t mask = ((size_t)1 << bits) - 1;
  size_t at = place_of_channel(key, 64 - bits);
  while (all[at].key && all[at].key != key) at = (at + 1) & mask;
  return &all[at];
}

ENTRY uint64_t channel_key(uint32_t comm, int peer) {
  return (uint64_t)comm << 32 | (uint32_t)peer;
}

static bool is_freed(uint64_t key) {
  return slot_of_channel(channels, channel_bits, channel_key((uint32_t)(key >> 32), ITSELF))
      ->IS_FREED;
}

/* Larger, if those of communicators that there still are need it. */
static bool grow_channels(void) {
  const size_t was = (size_t)1 << channel_bits;
  size_t kept = 0;
  for (size_t i = 0; i < was; ++i) kept += channels[i].key && !is_freed(channels[i].key);
  unsigned bits = channel_bits < FIRST_CHANNELS_BITS ? FIRST_CHANNELS_BITS : channel_bits;
  while (kept * 4 > (size_t)1 << bits) ++bits;
  if (bits > MOST_CHANNELS_BITS) return false;
  uint64_t at;
  Channel* larger = record_now_room(sizeof *larger << bits, &at);
  if (!larger) return false;
  for (size_t i = 0; i < was; ++i) {
    if (channels[i].key && !is_freed(channels[i].key))
      *slot_of_channel(larger, bits, channels[i].key) = channels[i];
  }
  Channel* old = channels;
  const uint64_t old_at = channels_at;
  channels = larger;
  channel_bits = bits;
  channel_shift = 64 - bits;
  channel_used = kept;
  channels_at = at;
  record_now_page->channels_at = at;
  record_now_page->channels = (uint64_t)1 << bits;
  if (old != no_channels) record_now_give_back(old, was * sizeof *old, old_at);
  record_forget_memos();
  return true;
}

__attribute__((noinline)) static Channel* other_channel(uint64_t key) {
  Channel* found = slot_of_channel(channels, channel_bits, key);
  if (found->key == key) return found;
  if (channels == no_channels || channel_used * 2 >= (size_t)1 << channel_bits) {
    if (!grow_channels()) {
      static Channel nowhere;
      note_odd();
      return &nowhere;
    }
    found = slot_of_channel(channels, channel_bits, key);
  }
  ++channel_used;
  found->key = key;
  return found;
}

/* Locked. */
ENTRY Channel* channel_of(uint32_t comm, int peer) {
  const uint64_t key = channel_key(comm, peer);
  Channel* found = &channels[place_of_channel(key, channel_shift)];
  return __builtin_expect(found->key == key, 1) ? found : other_channel(key);
}

/* Which of the sends to that process it is; 0: to nobody. Locked. */
ENTRY uint32_t count_out_locked(uint32_t comm, int peer, int tag) {
  if (peer < 0 || !comm) return 0;
  Channel* to = channel_of(comm, peer);
  to->out_tags += (uint64_t)tag;
  to->out_squares += (uint64_t)tag * (uint64_t)tag;
  return (uint32_t)++to->out;
}

ENTRY uint32_t count_out(uint32_t comm, int peer, int tag) {
  lock();
  const uint32_t number = count_out_locked(comm, peer, tag);
  unlock();
  return number;
}

ENTRY void count_in_locked(uint32_t comm, int peer, int tag) {
  if (peer < 0 || !comm) return;
  Channel* from = channel_of(comm, peer);
  from->in_tags += (uint64_t)tag;
  from->in_squares += (uint64_t)tag * (uint64_t)tag;
  ++from->in;
}

ENTRY void count_in(uint32_t comm, int peer, int tag) {
  lock();
  count_in_locked(comm, peer, tag);
  unlock();
}

/* Which of that communicator's collectives it is. */
static uint32_t count_collective(uint32_t comm, unsigned kind, int root) {
  if (!comm) return 0;
  lock();
  Channel* all = channel_of(comm, ITSELF);
  all->LAST_KIND = kind;
  all->LAST_ROOT = (uint64_t)(int64_t)root;
  const uint32_t number = (uint32_t)++all->COLLECTIVES;
  unlock();
  return number;
}

/* Locked. */
static void begin_counts(uint32_t comm) { channel_of(comm, ITSELF); }
static void end_counts(uint32_t comm) { channel_of(comm, ITSELF)->IS_FREED = 1; }

/* ---- waits: each of these before a call that may take long, `wait_is_over` behind it ---- */

ENTRY RecordWait* new_wait(RecordThread* me, unsigned kind, unsigned flags, uint32_t site,
                           uint32_t comm) {
  RecordWait* wait = me->now;
  wait->kind = (uint16_t)kind;
  wait->flags = (uint8_t)flags;
  wait->reserved1 = 0; /* one store with what is before it */
  wait->site = site;
  wait->comm = comm;
  return wait;
}

/* What was written before is of this wait. */
ENTRY void begin_wait(RecordWait* wait) {
  __atomic_store_n(&wait->serial, wait->serial + 1, __ATOMIC_RELEASE);
}

/* What is written behind is of the next one. */
ENTRY void wait_is_over(RecordThread* me) {
  RecordWait* wait = me->now;
  __atomic_store_n(&wait->serial, wait->serial + 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

ENTRY void set_out(RecordWait* wait, uint32_t comm, int peer, int tag) {
  wait->to = peer;
  wait->to_tag = tag;
  wait->number = count_out(comm, peer, tag);
}

ENTRY void wait_to_send(RecordThread* me, unsigned kind, uint32_t site, uint32_t comm, int dest,
                        int tag) {
  RecordWait* wait = new_wait(me, kind, RECORD_SEND, site, comm);
  set_out(wait, comm, dest < 0 ? RECORD_NONE : dest, tag);
  begin_wait(wait);
}

ENTRY void set_in(RecordWait* wait, int source, int tag) {
  wait->peer = source == MPI_ANY_SOURCE ? RECORD_ANY : source < 0 ? RECORD_NONE : source;
  wait->tag = tag == MPI_ANY_TAG ? RECORD_ANY : tag;
}

/* Also of a probe. */
ENTRY void wait_to_receive(RecordThread* me, unsigned kind, uint32_t site, uint32_t comm,
                           int source, int tag) {
  RecordWait* wait = new_wait(me, kind, RECORD_RECEIVE, site, comm);
  set_in(wait, source, tag);
  begin_wait(wait);
}

ENTRY void wait_to_exchange(RecordThread* me, unsigned kind, uint32_t site, uint32_t comm, int dest,
                            int send_tag, int source, int tag) {
  RecordWait* wait = new_wait(me, kind, RECORD_SEND | RECORD_RECEIVE, site, comm);
  set_out(wait, comm, dest < 0 ? RECORD_NONE : dest, send_tag);
  set_in(wait, source, tag);
  begin_wait(wait);
}

/* `counts`: all of the communicator call it, in one order. */
ENTRY void wait_for_all(RecordThread* me, unsigned kind, uint32_t site, uint32_t comm, int root,
                        bool counts) {
  RecordWait* wait = new_wait(me, kind, RECORD_COLLECTIVE, site, comm);
  wait->peer = root < 0 ? RECORD_NONE : root;
  wait->number = counts ? count_collective(comm, kind, wait->peer) : 0;
  begin_wait(wait);
}

/* Their keys are there already. */
ENTRY void wait_for_requests(RecordThread* me, unsigned kind, uint32_t site, int64_t requests) {
  RecordWait* wait = new_wait(me, kind, 0, site, 0);
  wait->requests = (uint32_t)requests;
  begin_wait(wait);
}

/* For what nobody can tell from outside. */
ENTRY void wait_otherwise(RecordThread* me, unsigned kind, uint32_t site) {
  RecordWait* wait = new_wait(me, kind, 0, site, 0);
  wait->requests = 0;
  begin_wait(wait);
}

ENTRY void note_poll(RecordThread* me, unsigned kind) {
  me->now->poll_kind = (uint16_t)kind;
  ++me->now->polls;
}

#endif
