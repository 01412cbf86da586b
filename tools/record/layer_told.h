/* layer_told: what is recorded of a call that was made, by its family. Part of layer.c. Thread:
   any. Owner: the layer. Invariant: whatever the call gave, it is told of once. */
#ifndef HEADWAY_RECORD_LAYER_TOLD_H
#define HEADWAY_RECORD_LAYER_TOLD_H

#include "layer_now.h"
#include "layer_sizes.h"
#include "layer_tables.h"

/* ---- helpers ---- */

/* What stands for no rank and no tag is below 0 in all MPIs, as ranks and tags are not. */
_Static_assert(MPI_PROC_NULL < 0 && MPI_ANY_SOURCE < 0 && MPI_ROOT < 0 && MPI_ANY_TAG < 0,
               "ranks and tags are told by their sign");

ENTRY int told_peer(int rank) {
  if (__builtin_expect(rank >= 0, 1)) return rank;
  return rank == MPI_PROC_NULL    ? RECORD_NONE
         : rank == MPI_ANY_SOURCE ? RECORD_ANY
         : rank == MPI_ROOT       ? RECORD_NONE
                                  : rank;
}
ENTRY int told_tag(int tag) { return tag == MPI_ANY_TAG ? RECORD_ANY : tag; }
ENTRY unsigned wild(int source, int tag) {
  if (__builtin_expect((source | tag) >= 0, 1)) return 0;
  return (source == MPI_ANY_SOURCE ? RECORD_ANY_SOURCE : 0u) |
         (tag == MPI_ANY_TAG ? RECORD_ANY_TAG : 0u);
}
ENTRY unsigned failed(int rc) {
  if (__builtin_expect(rc == MPI_SUCCESS, 1)) return 0;
  note_odd(); /* nobody knows what of it was done */
  return RECORD_FAILED;
}

/* A call that may take long begins: what was written so far is safe if the job is ended in it. */
ENTRY uint64_t begin_blocking(RecordThread* me) {
  const uint64_t now = record_now();
  me->now->begin = now;
  return __builtin_expect(now >= me->until, 0) ? record_due(me, now) : now;
}

ENTRY void end_blocking(RecordThread* me, uint64_t begin, uint64_t end) {
  if (__builtin_expect(end - begin > me->long_wait, 0)) record_look_at_delay(me, begin, end, 1);
}

/* ---- point to point ---- */

#define CALL RecordThread *me, unsigned kind, uint32_t site, uint64_t begin, uint64_t end, int rc

ENTRY void told_send(CALL, int dest, int tag, uint64_t bytes, uint32_t comm) {
  record_put(me, kind, RECORD_SEND | failed(rc), site, begin, end, comm, told_peer(dest), tag, 0,
             bytes);
}

/* Locked. */
ENTRY uint32_t begun_locked(int rc, unsigned kind, unsigned flags, uint32_t comm, int peer, int tag,
                            uint32_t number, uint64_t bytes, const MPI_Request* request) {
  if (__builtin_expect(rc != MPI_SUCCESS, 0)) return 0;
  const uint32_t id = next_id_locked();
  if (__builtin_expect(*request == MPI_REQUEST_NULL, 0)) return id;
  Operation* operation = add_operation(KEY(*request));
  if (__builtin_expect(operation != NULL, 1)) {
    /* Field by field: a structure would be put together elsewhere and copied. */
    operation->id = id;
    operation->next = 0;
    operation->kind = (uint16_t)kind;
    operation->flags = (uint8_t)flags;
    operation->persistent = false;
    operation->active = true;
    operation->comm = comm;
    operation->peer = peer;
    operation->tag = tag;
    operation->number = number;
    operation->bytes = bytes;
    operation->memo = &no_memo;
    operation->serial = NO_MEMO;
    operation->more = __builtin_expect(narrows, 0) ? more_now(NULL, 0) : NULL;
    operation->rare = operation->more != NULL;
  }
  return id;
}

/* Of what is begun less often than messages. */
__attribute__((noinline)) static uint32_t begun(int rc, unsigned kind, unsigned flags,
                                                uint32_t comm, int peer, int tag, uint32_t number,
                                                uint64_t bytes, const MPI_Request* request) {
  const bool many = lock();
  const uint32_t id = begun_locked(rc, kind, flags, comm, peer, tag, number, bytes, request);
  unlock_if(many);
  return id;
}

/* Of operations that are not begun in an inner loop. `made`, null or of MPI_Comm_idup: the new
 * communicator, which is the how manieth of its parent. */
static void keep(uint64_t key, const Operation* told, MPI_Comm* made, int parent_order) {
  lock();
  Operation* operation = add_operation(key);
  if (operation) {
    *operation = *told;
    operation->memo = &no_memo;
    operation->serial = NO_MEMO;
    operation->more = more_now(made, parent_order);
    operation->rare = true;
  }
  unlock();
}

/* What was not begun. */
RARE static void told_unbegun(CALL, unsigned flags, int peer, int tag, uint64_t bytes,
                              uint32_t comm) {
  record_put(me, kind, flags | failed(rc), site, begin, end, comm, peer, tag, 0, bytes);
}

ENTRY void told_isend(CALL, int dest, int tag, uint64_t bytes, MPI_Comm comm,
                      MPI_Request* request) {
  const uint32_t where = id_of(comm);
  const int peer = told_peer(dest);
  if (__builtin_expect(rc != MPI_SUCCESS, 0)) {
    told_unbegun(me, kind, site, begin, end, rc, RECORD_SEND, peer, tag, bytes, where);
    return;
  }
  const bool many = lock();
  const uint32_t number = count_out_locked(where, peer, tag);
  const uint32_t id = begun_locked(rc, kind, RECORD_SEND, where, peer, tag, number, bytes, request);
  unlock_if(many);
  record_put(me, kind, RECORD_SEND, site, begin, end, where, peer, tag, id, bytes);
}

ENTRY void told_recv(CALL, int source, int tag, uint32_t comm, const MPI_Status* status) {
  const bool came = rc == MPI_SUCCESS;
  const int peer = told_peer(came ? status->MPI_SOURCE : source);
  const int told = told_tag(came ? status->MPI_TAG : tag);
  if (came) count_in(comm, peer, told);
  record_put(me, kind, RECORD_RECEIVE | wild(source, tag) | failed(rc), site, begin, end, comm,
             peer, told, 0, came ? bytes_that_came(status) : 0);
}

ENTRY void told_irecv(CALL, int source, int tag, uint64_t bytes, MPI_Comm comm,
                      MPI_Request* request) {
  const unsigned flags = RECORD_RECEIVE | wild(source, tag);
  const uint32_t where = id_of(comm);
  const int peer = told_peer(source), told = told_tag(tag);
  if (__builtin_expect(rc != MPI_SUCCESS, 0)) {
    told_unbegun(me, kind, site, begin, end, rc, flags, peer, told, bytes, where);
    return;
  }
  const bool many = lock();
  const uint32_t id = begun_locked(rc, kind, flags, where, peer, told, 0, bytes, request);
  unlock_if(many);
  record_put(me, kind, flags, site, begin, end, where, peer, told, id, bytes);
}

/* One request for both: two records with its number. */
static inline void told_isendrecv(CALL, int dest, int send_tag, uint64_t bytes, int source, int tag,
                                  uint64_t room, MPI_Comm comm, MPI_Request* request) {
  const unsigned flags = RECORD_RECEIVE | wild(source, tag);
  const uint32_t where = id_of(comm);
  if (rc == MPI_SUCCESS) count_out(where, told_peer(dest), send_tag);
  const uint32_t id =
      begun(rc, kind, flags, where, told_peer(source), told_tag(tag), 0, room, request);
  record_put(me, kind, RECORD_SEND | failed(rc), site, begin, end, where, told_peer(dest), send_tag,
             id, bytes);
  record_put(me, kind, flags | failed(rc), site, begin, end, where, told_peer(source),
             told_tag(tag), id, room);
}

/* Matched probes: the message's number is kept under its handle, beside requests; handles of both
   never meet, as the message's is turned. */
static uint64_t message_key(MPI_Message message) { return ~KEY(message); }

static uint32_t message_of(MPI_Message message) {
  Operation found = {0};
  return message != MPI_MESSAGE_NULL && take(message_key(message), &found) ? found.id : 0;
}

static inline void told_mrecv(CALL, uint32_t message, const MPI_Status* status) {
  const bool came = rc == MPI_SUCCESS;
  record_put(me, kind, RECORD_RECEIVE | failed(rc), site, begin, end, 0,
             came ? told_peer(status->MPI_SOURCE) : RECORD_NONE,
             came ? told_tag(status->MPI_TAG) : RECORD_NONE, message,
             came ? bytes_that_came(status) : 0);
}

static inline void told_imrecv(CALL, uint32_t message, MPI_Request* request) {
  const uint32_t id =
      begun(rc, kind, RECORD_RECEIVE, 0, RECORD_NONE, RECORD_NONE, 0, message, request);
  record_put(me, kind, RECORD_RECEIVE | failed(rc), site, begin, end, 0, RECORD_NONE, RECORD_NONE,
             id, message);
}

static void told_vain(RecordThread* me, unsigned kind, uint32_t site, uint64_t begin,
                      uint64_t end) {
  note_poll(me, kind);
  if (me->off) return;
  RecordVain* vain = &me->vain;
  if (vain->count && (vain->site != site || vain->kind != kind || vain->count == INT_MAX))
    record_write_vain(me);
  if (!vain->count) {
    *vain = (RecordVain){.site = site, .kind = (uint16_t)kind, .begin = begin};
    me->at = RECORD_SHAPES; /* so that the next record is none of those that are put at once */
    me->until = 0;
  }
  ++vain->count;
  vain->end = end;
  vain->inside += end - begin;
}

static inline void told_probe(CALL, int found, MPI_Message message, int source, int tag,
                              MPI_Comm comm, const MPI_Status* status) {
  if (rc == MPI_SUCCESS && !found) {
    told_vain(me, kind, site, begin, end);
    return;
  }
  const bool came = rc == MPI_SUCCESS;
  const uint32_t where = id_of(comm);
  uint32_t id = 0;
  if (came && message != MPI_MESSAGE_NULL) {
    /* Nobody else can receive it. */
    count_in(where, told_peer(status->MPI_SOURCE), told_tag(status->MPI_TAG));
    id = next_id();
#ifdef MPI_MESSAGE_NO_PROC
    if (message != MPI_MESSAGE_NO_PROC)
#endif
      keep(message_key(message),
           &(Operation){.id = id, .kind = (uint16_t)kind, .flags = RECORD_RECEIVE}, NULL, 0);
  }
  record_put(me, kind, RECORD_RECEIVE | wild(source, tag) | failed(rc), site, begin, end, where,
             told_peer(came ? status->MPI_SOURCE : source), told_tag(came ? status->MPI_TAG : tag),
             id, came ? bytes_that_came(status) : 0);
}

/* ---- persistent ---- */

/* Which of the persistent collectives of that communicator this is: all of its ranks make them in
   one order, but need not start them in one. */
static int tag_of_collective(unsigned kind, MPI_Comm comm) {
  lock();
  Comm* found = find_comm(comm);
  const uint32_t order = found ? found->persistent++ % RECORD_MOST_PERSISTENT : 0;
  unlock();
  return (int)(kind + order * RECORD_MOST_KINDS);
}

static inline void told_init(CALL, unsigned flags, int peer, int tag, uint64_t bytes, MPI_Comm comm,
                             MPI_Request* request) {
  const bool collective = flags & RECORD_COLLECTIVE;
  if (rc == MPI_SUCCESS) {
    if (flags & RECORD_RECEIVE) flags |= wild(peer, tag);
    keep(KEY(*request),
         &(Operation){.kind = (uint16_t)kind,
                      .flags = (uint8_t)flags,
                      .persistent = true,
                      .comm = id_of(comm),
                      .peer = told_peer(peer),
                      .tag = collective ? tag_of_collective(kind, comm) : told_tag(tag),
                      .bytes = bytes},
         NULL, 0);
  }
  record_put(me, kind, failed(rc), site, begin, end, id_of(comm), RECORD_NONE, RECORD_NONE, 0,
             bytes);
}

static void told_start(CALL, int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    Operation found = {.peer = RECORD_NONE, .tag = RECORD_NONE};
    lock();
    const Slot* slot = find_slot(KEY(requests[i]));
    if (slot) {
      Operation* operation = &operations[slot->first];
      if (rc == MPI_SUCCESS) {
        operation->active = true;
        operation->id = next_id_locked();
        if ((operation->flags & (RECORD_SEND | RECORD_PARTITIONED)) == RECORD_SEND)
          operation->number = count_out_locked(operation->comm, operation->peer, operation->tag);
      }
      found = *operation;
    }
    unlock();
    record_put(me, kind, found.flags | failed(rc), site, begin, end, found.comm, found.peer,
               found.tag, found.id, found.bytes);
  }
}

/* ---- completion ---- */

enum { FEW = RECORD_NOW_KEYS };
typedef struct Keys {
  int64_t count,
      asked;     /* `count` 0 without memory for a copy: then nothing is told of the completions */
  int64_t there; /* of `keys` that are of a request */
  uint64_t* keys;
  MPI_Status* statuses;
  MPI_Status few_statuses[FEW];
  uint64_t* few; /* where others see them */
  /* Of the row of the call itself, where it has one beside those of its requests: */
  unsigned shape;
  uint64_t epoch;
} Keys;

static uint64_t key_of_request(MPI_Request request) {
  return request == MPI_REQUEST_NULL ? 0 : KEY(request);
}

ENTRY void copy_keys(RecordThread* me, Keys* to, int64_t count, const MPI_Request* requests) {
  to->count = to->asked = count > 0 ? count : 0;
  to->shape = RECORD_SHAPES;
  to->epoch = 0;
  to->statuses = NULL;
  to->keys = to->few = me->now->keys;
  if (to->count > FEW && !(to->keys = malloc(sizeof *to->keys * (size_t)to->count))) {
    to->keys = to->few;
    to->count = 0;
    memset(to->few, 0, FEW * sizeof *to->few);
  }
  /* Not in `to`: what is stored might be that, and would be read again each time. */
  uint64_t* const keys = to->keys;
  const int64_t many = to->count;
  int64_t there = 0;
  for (int64_t i = 0; i < many; ++i) {
    const uint64_t key = key_of_request(requests[i]);
    keys[i] = key;
    there += key != 0;
  }
  to->there = there;
  if (to->keys != to->few) memcpy(to->few, to->keys, FEW * sizeof *to->few);
}

static MPI_Status* room_for(Keys* keys, MPI_Status* given) {
  if (given != MPI_STATUSES_IGNORE) return given;
  if (keys->asked <= FEW) return keys->few_statuses;
  keys->statuses = malloc(sizeof *keys->statuses * (size_t)keys->asked);
  if (!keys->statuses) keys->count = 0;
  return keys->statuses ? keys->statuses : MPI_STATUSES_IGNORE;
}

static void free_keys(Keys* keys) {
  if (__builtin_expect(keys->keys != keys->few, 0)) free(keys->keys);
  if (__builtin_expect(keys->statuses != NULL, 0)) free(keys->statuses);
}

static bool cancels; /* MPI_Cancel was called at least once */

/* Of an operation with more to do than to tell it, and of a handle of which nothing is known. */
__attribute__((noinline)) static void put_rare(RecordThread* me, unsigned kind, uint32_t site,
                                               uint64_t begin, uint64_t end, int rc, uint64_t key,
                                               const MPI_Status* status) {
  Operation found = {.peer = RECORD_NONE, .tag = RECORD_NONE};
  unsigned flags = failed(rc);
  uint64_t bytes = 0;
  if (take(key, &found) && found.persistent && !found.active) {
    found = (Operation){.peer = RECORD_NONE, .tag = RECORD_NONE}; /* it was over before */
  } else if (found.id) {
    flags |= found.flags;
    bytes = found.bytes;
    MPI_Comm* const made = found.more ? found.more->made : NULL;
    if (made) {
      const uint32_t parent = found.comm;
      if (rc == MPI_SUCCESS && *made != MPI_COMM_NULL) {
        tell_comm(*made, (uint32_t)found.bytes, parent, names[found.kind],
                  found.more->parent_order);
      }
      bytes = 0;
    }
    int cancelled = 0;
    if (cancels && !(flags & RECORD_COLLECTIVE)) PMPI_Test_cancelled(status, &cancelled);
    if (cancelled) {
      flags |= RECORD_FAILED;
    } else if (flags & RECORD_COLLECTIVE) {
      found.tag = RECORD_NONE;
    } else if ((flags & (RECORD_RECEIVE | RECORD_PARTITIONED)) == RECORD_RECEIVE &&
               rc == MPI_SUCCESS) { /* a partitioned one has no wild cards, and not all MPIs fill in
                                       its status */
      if (found.peer < 0) found.peer = told_peer(status->MPI_SOURCE);
      if (found.tag < 0) found.tag = told_tag(status->MPI_TAG);
      bytes = bytes_that_came(status);
      count_in(found.comm, found.peer, found.tag);
    }
  } else {
    note_odd(); /* what was it? */
  }
  record_put(me, kind, flags, site, begin, end, found.comm, found.peer, found.tag, found.id, bytes);
  if (!found.persistent) free_more(found.more);
}

/* One operation is over: its record. `more`: there is one of that call before it. */
ENTRY void put_over(RecordThread* me, unsigned kind, uint32_t site, uint64_t begin, uint64_t end,
                    int rc, uint64_t key, const MPI_Status* status, bool more) {
  const bool many = lock();
  Slot* const slot = find_slot(key);
  const Operation* const found = slot ? &operations[slot->first] : NULL;
  if (__builtin_expect(!found || found->rare || cancels || rc != MPI_SUCCESS, 0)) {
    unlock_if(many);
    put_rare(me, kind, site, begin, end, rc, key, status);
    return;
  }
  const unsigned flags = found->flags;
  const uint32_t id = found->id, comm = found->comm;
  int peer = found->peer, tag = found->tag;
  uint64_t bytes = found->bytes;
  drop_first(slot);
  if (flags & RECORD_RECEIVE) {
    /* What was asked for is what came; of MPI_Isendrecv not all MPIs fill in the status. */
    if (peer < 0) peer = told_peer(status->MPI_SOURCE);
    if (tag < 0) tag = told_tag(status->MPI_TAG);
    count_in_locked(comm, peer, tag);
  }
  unlock_if(many);
  if (flags & RECORD_RECEIVE) bytes = bytes_that_came(status);
  if (more) {
    record_put_more(me, kind, flags, site, begin, end, comm, peer, tag, id, bytes);
  } else {
    record_put(me, kind, flags, site, begin, end, comm, peer, tag, id, bytes);
  }
}

ENTRY void put_completed(RecordThread* me, unsigned kind, uint32_t site, uint64_t begin,
                         uint64_t end, int rc, uint64_t key, const MPI_Status* status) {
  put_over(me, kind, site, begin, end, rc, key, status, false);
}

ENTRY void put_none(RecordThread* me, unsigned kind, uint32_t site, uint64_t begin, uint64_t end,
                    int rc, int count) {
  record_put(me, kind, failed(rc), site, begin, end, 0, RECORD_NONE, count, 0, 0);
}

ENTRY void told_one(CALL, int flag, uint64_t key, const MPI_Status* status) {
  if (rc == MPI_SUCCESS && !flag) {
    told_vain(me, kind, site, begin, end);
  } else if (!key) {
    put_none(me, kind, site, begin, end, rc, 0);
  } else {
    put_completed(me, kind, site, begin, end, rc, key, status);
  }
}

RARE static void told_all_failed(CALL, const Keys* keys, const MPI_Request* requests,
                                 const MPI_Status* statuses) {
  /* Some may be pending: what is still there and not persistent is not over. */
  int over = 0;
  for (int64_t i = 0; i < keys->count; ++i)
    over += keys->keys[i] && KEY(requests[i]) != keys->keys[i];
  if (over != 1) put_none(me, kind, site, begin, end, rc, over);
  for (int64_t i = 0; i < keys->count; ++i) {
    if (!keys->keys[i] || KEY(requests[i]) == keys->keys[i]) continue;
    put_completed(me, over == 1 ? kind : RECORD_COMPLETION, site, begin, end,
                  over == 1 ? rc : statuses[i].MPI_ERROR, keys->keys[i], &statuses[i]);
  }
}

/* Of a list of which nothing else is an operation. */
__attribute__((noinline)) static void put_only(RecordThread* me, unsigned kind, uint32_t site,
                                               uint64_t begin, uint64_t end, uint64_t key,
                                               const MPI_Status* status) {
  put_completed(me, kind, site, begin, end, MPI_SUCCESS, key, status);
}

ENTRY void told_all(CALL, int flag, Keys* keys, const MPI_Request* requests,
                    const MPI_Status* statuses) {
  if (__builtin_expect(rc != MPI_SUCCESS, 0)) {
    told_all_failed(me, kind, site, begin, end, rc, keys, requests, statuses);
    return;
  }
  if (!flag) {
    told_vain(me, kind, site, begin, end);
    return;
  }
  const int64_t there = keys->there, many = keys->count;
  const uint64_t* const key = keys->keys;
  if (there == 1) {
    int64_t i = 0;
    while (!key[i]) ++i;
    put_only(me, kind, site, begin, end, key[i], &statuses[i]);
    return;
  }
  put_none(me, kind, site, begin, end, MPI_SUCCESS, (int)there);
  keys->shape = me->at;
  keys->epoch = me->epoch;
  for (int64_t i = 0; i < many; ++i) {
    if (key[i])
      put_over(me, RECORD_COMPLETION, site, begin, end, MPI_SUCCESS, key[i], &statuses[i], true);
  }
}

static void told_any(CALL, int flag, const Keys* keys, int index, const MPI_Status* status) {
  if (rc == MPI_SUCCESS && !flag) {
    told_vain(me, kind, site, begin, end);
  } else if (index == MPI_UNDEFINED || index < 0 || index >= keys->count || !keys->keys[index]) {
    put_none(me, kind, site, begin, end, rc, 0);
  } else {
    put_completed(me, kind, site, begin, end, rc, keys->keys[index], status);
  }
}

static void told_some(CALL, const Keys* keys, int over, const int* indices,
                      const MPI_Status* statuses) {
  if (over == 0 && rc == MPI_SUCCESS) {
    told_vain(me, kind, site, begin, end);
    return;
  }
  if (over == MPI_UNDEFINED || over < 0 || over > keys->count)
    over = 0; /* none was active, or nothing is known */
  if (over == 1) {
    put_completed(me, kind, site, begin, end, rc, keys->keys[indices[0]], &statuses[0]);
    return;
  }
  put_none(me, kind, site, begin, end, rc, over);
  for (int i = 0; i < over; ++i) {
    put_over(me, RECORD_COMPLETION, site, begin, end,
             rc == MPI_SUCCESS ? rc : statuses[i].MPI_ERROR, keys->keys[indices[i]], &statuses[i],
             true);
  }
}

/* A program of sessions alone has no world, and no rank in it. */
static void begin_without_world(void) {
  int there = 0, length = 0;
  if (PMPI_Initialized(&there) == MPI_SUCCESS && there) return;
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];
  PMPI_Get_library_version(version, &length);
  record_begin_file(-1, 0, version);
}

/* ---- collectives, communicators, the rest ---- */

ENTRY void told_coll(CALL, int root, uint64_t bytes, uint32_t comm) {
  record_put(me, kind, RECORD_COLLECTIVE | failed(rc), site, begin, end, comm, told_peer(root),
             RECORD_NONE, 0, bytes);
}

ENTRY void told_icoll(CALL, int root, uint64_t bytes, MPI_Comm comm, MPI_Request* request) {
  const uint32_t where = id_of(comm);
  const uint32_t number = rc == MPI_SUCCESS ? count_collective(where, kind, told_peer(root)) : 0;
  const uint32_t id = begun(rc, kind, RECORD_COLLECTIVE, where, told_peer(root), RECORD_NONE,
                            number, bytes, request);
  record_put(me, kind, RECORD_COLLECTIVE | failed(rc), site, begin, end, where, told_peer(root),
             RECORD_NONE, id, bytes);
}

/* Its number among those made from its parent counts on all of the parent's ranks, also where there
   is none for this one; only MPI_Comm_create_group is not called by all: its number is its tag. */
static void told_new_comm(CALL, MPI_Comm parent, const MPI_Comm* made, MPI_Request* request) {
  uint32_t id = 0;
  const bool from_fortran = site != 0 && site == me->fortran_site;
  if (rc == MPI_SUCCESS && parent == MPI_COMM_NULL && !request) begin_without_world();
  if (rc == MPI_SUCCESS) {
    int order = 0;
    lock();
    Comm* from = parent == MPI_COMM_NULL ? NULL : find_comm(parent);
    if (from && kind != K_MPI_Comm_create_group) order = from->creations++;
    if (*made != MPI_COMM_NULL || request) id = ++last_comm;
    unlock();
    if (request && *request != MPI_REQUEST_NULL) {
      const uint32_t number = count_collective(id_of(parent), kind, RECORD_NONE);
      /* Fortran's own variable for it is gone when it is completed. */
      keep(KEY(*request),
           &(Operation){.id = next_id(),
                        .kind = (uint16_t)kind,
                        .flags = RECORD_COLLECTIVE,
                        .active = true,
                        .comm = id_of(parent),
                        .peer = RECORD_NONE,
                        .tag = RECORD_NONE,
                        .number = number,
                        .bytes = from_fortran ? 0 : id},
           from_fortran ? NULL : (MPI_Comm*)made, order);
    } else if (*made != MPI_COMM_NULL) {
      tell_comm(*made, id, id_of(parent), names[kind], order);
    }
  }
  record_put(me, kind, RECORD_COLLECTIVE | failed(rc), site, begin, end, id_of(parent), RECORD_NONE,
             RECORD_NONE, id, 0);
}

static inline void told_rma(CALL, int peer, uint64_t bytes, MPI_Request* request) {
  uint32_t id = 0;
  if (request) id = begun(rc, kind, 0, 0, told_peer(peer), RECORD_NONE, 0, bytes, request);
  record_put(me, kind, failed(rc), site, begin, end, 0, told_peer(peer), RECORD_NONE, id, bytes);
}

static inline void told_other(CALL, uint64_t bytes) {
  record_put(me, kind, failed(rc), site, begin, end, 0, RECORD_NONE, RECORD_NONE, 0, bytes);
}

#endif
