/* layer: what is recorded of each call of MPI. Compiled with the mpicc of one MPI, so that it
   speaks that MPI's ABI; loaded by librecorder. Its entries are generated (layer_entries.inc): each
   makes the call, and tells one of the functions here what it was and what came of it.

   Thread: any. Owner: librecorder, for the process's life. Invariant: nothing here sends a message.
   All that is called of MPI is PMPI_. */
#define _GNU_SOURCE
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "have.h"
#include "layer.h"
#include "recorder.h"
#include "recorder_kinds.h"

#define ENTRY static inline __attribute__((always_inline))
#define SITE record_site(me, __builtin_return_address(0))
#define KEY(handle) ((uint64_t)(uintptr_t)(handle))

enum { WORLD = 1, SELF = 2 };
static const double long_ns = 100000, apart_ns = 1000000,
                    block_ns = 1e9; /* of waits; between looks; between blocks */

static const char* const names[] = {
#include "recorder_names.inc"
};

/* ---- tables, by handle ---- */

/* MPI may give several operations that are over one handle, and an old handle to a new operation
   while another thread still learns that the old one is over: so a handle has a row of them, and
   the oldest is the one that ends. */
typedef struct Operation {
  uint32_t id, next; /* in its row, or of the free ones; 0: the last one */
  uint16_t kind;     /* of the call that made it */
  uint8_t flags;
  bool persistent, active;
  uint32_t comm;
  int peer, tag;
  uint64_t bytes;
  MPI_Comm* made; /* of MPI_Comm_idup */
  void* held[4];  /* lists that it reads until its end; freed then */
  int parent_order;
} Operation;

typedef struct Slot {
  uint64_t key;
  uint32_t first, last; /* 0: empty */
} Slot;

static Slot* slots;
static size_t slot_count, slot_used;
static Operation* operations;
static uint32_t operation_room, operation_free;
static uint32_t last_id, last_comm = SELF;
static bool several; /* threads may be here at once */
static char gate;

static void lock(void) {
  while (several && __atomic_test_and_set(&gate, __ATOMIC_ACQUIRE)) sched_yield();
}
static void unlock(void) {
  if (several) __atomic_clear(&gate, __ATOMIC_RELEASE);
}

/* Of the operation that this thread is about to begin. */
static __thread void* to_hold[4];

static void free_held(Operation* operation) {
  for (int i = 0; i < 4; ++i) {
    free(operation->held[i]);
    operation->held[i] = NULL;
  }
}

static size_t place(uint64_t key) {
  return (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (slot_count - 1);
}

static Slot* find_slot(uint64_t key) {
  if (!slot_count) return NULL;
  for (size_t at = place(key); slots[at].first; at = (at + 1) & (slot_count - 1)) {
    if (slots[at].key == key) return &slots[at];
  }
  return NULL;
}

static bool grow_slots(void) {
  const size_t was = slot_count, now = was ? was * 2 : 1024;
  Slot* old = slots;
  Slot* larger = calloc(now, sizeof *larger);
  if (!larger) return false;
  slots = larger;
  slot_count = now;
  for (size_t i = 0; i < was; ++i) {
    if (!old[i].first) continue;
    size_t at = place(old[i].key);
    while (slots[at].first) at = (at + 1) & (now - 1);
    slots[at] = old[i];
  }
  free(old);
  return true;
}

static void remove_slot(Slot* slot) {
  size_t hole = (size_t)(slot - slots);
  --slot_used;
  for (size_t at = (hole + 1) & (slot_count - 1); slots[at].first;
       at = (at + 1) & (slot_count - 1)) {
    const size_t home = place(slots[at].key);
    if (((at - home) & (slot_count - 1)) >= ((at - hole) & (slot_count - 1))) {
      slots[hole] = slots[at];
      hole = at;
    }
  }
  slots[hole].first = slots[hole].last = 0;
}

/* 0: no memory; then that operation's end is not known. Index 0 is nobody. */
static uint32_t new_operation(void) {
  if (!operation_free) {
    const uint32_t now = operation_room ? operation_room * 2 : 1024;
    Operation* more = realloc(operations, now * sizeof *more);
    if (!more) return 0;
    operations = more;
    for (uint32_t i = operation_room ? operation_room : 1; i < now; ++i) {
      operations[i].next = operation_free;
      operation_free = i;
    }
    operation_room = now;
  }
  const uint32_t found = operation_free;
  operation_free = operations[found].next;
  return found;
}

static uint32_t next_id(void) {
  if (!several) return ++last_id ? last_id : ++last_id;
  uint32_t id;
  do id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
  while (!id);
  return id;
}

static void keep(uint64_t key, Operation operation) {
  lock();
  const uint32_t at = new_operation();
  if (at && (slot_used * 2 < slot_count || grow_slots())) {
    operation.next = 0;
    memcpy(operation.held, to_hold, sizeof to_hold);
    memset(to_hold, 0, sizeof to_hold);
    operations[at] = operation;
    Slot* slot = find_slot(key);
    if (slot) {
      operations[slot->last].next = at;
      slot->last = at;
    } else {
      size_t to = place(key);
      while (slots[to].first) to = (to + 1) & (slot_count - 1);
      slots[to] = (Slot){key, at, at};
      ++slot_used;
    }
  }
  unlock();
}

/* The oldest operation of that handle: taken out, unless it is persistent: then it is inactive from
 * now on. */
static bool take(uint64_t key, Operation* found) {
  lock();
  Slot* slot = find_slot(key);
  if (slot) {
    const uint32_t at = slot->first;
    *found = operations[at];
    if (found->persistent) {
      operations[at].active = false;
    } else {
      slot->first = found->next;
      free_held(&operations[at]);
      operations[at].next = operation_free;
      operation_free = at;
      if (!slot->first) remove_slot(slot);
    }
  }
  unlock();
  return slot != NULL;
}

static void forget(uint64_t key) {
  lock();
  Slot* slot = find_slot(key);
  if (slot) {
    const uint32_t at = slot->first;
    slot->first = operations[at].next;
    free_held(&operations[at]);
    operations[at].next = operation_free;
    operation_free = at;
    if (!slot->first) remove_slot(slot);
  }
  unlock();
}

static bool look_up(uint64_t key, Operation* found) {
  lock();
  const Slot* slot = find_slot(key);
  if (slot) *found = operations[slot->first];
  unlock();
  return slot != NULL;
}

/* ---- communicators ---- */

typedef struct Comm {
  uint64_t key;
  uint32_t id;
  int creations, rank, size; /* communicators that were made from it; who this process is in it */
  bool inter;
} Comm;

static Comm* comms; /* few, in no order */
static int comm_count, comm_room;

static Comm* find_comm(MPI_Comm comm) {
  for (int i = comm_count; i-- > 0;) {
    if (comms[i].key == KEY(comm)) return &comms[i];
  }
  return NULL;
}

static uint32_t id_of(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD) return WORLD;
  if (comm == MPI_COMM_NULL) return 0;
  lock();
  const Comm* found = find_comm(comm);
  const uint32_t id = found ? found->id : 0;
  unlock();
  return id;
}

static void forget_comm(MPI_Comm comm) {
  lock();
  Comm* found = find_comm(comm);
  if (found) *found = comms[--comm_count];
  unlock();
}

static Comm about(MPI_Comm comm) {
  lock();
  const Comm* found = find_comm(comm);
  const Comm copy = found ? *found : (Comm){0, 0, 0, -1, 0, false};
  unlock();
  return copy;
}

static int rank_in(MPI_Comm comm) { return about(comm).rank; }
static int64_t peers_of(MPI_Comm comm) { return about(comm).size; }
static bool is_root(MPI_Comm comm, int root) { return root == MPI_ROOT || root == rank_in(comm); }

static MPI_Group world_group;

/* Ranks of the world, as ranges of up and down; null where one of them is of another world. */
static char* members_of(MPI_Comm comm, bool remote) {
  MPI_Group group;
  int size = 0;
  const int rc = remote ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group);
  if (rc != MPI_SUCCESS) return NULL;
  PMPI_Group_size(group, &size);
  int* own = malloc(sizeof *own * (size_t)(size + 1));
  int* world = malloc(sizeof *world * (size_t)(size + 1));
  char* text = malloc((size_t)size * 26 + 8);
  bool known = own && world && text;
  if (known) {
    for (int i = 0; i < size; ++i) own[i] = world[i] = i;
    if (world_group != MPI_GROUP_NULL)
      PMPI_Group_translate_ranks(group, size, own, world_group, world);
    for (int i = 0; i < size; ++i) known = known && world[i] != MPI_UNDEFINED;
  }
  if (known) {
    size_t at = 0;
    for (int i = 0; i < size;) {
      int last = i;
      const int step = i + 1 < size ? world[i + 1] - world[i] : 0;
      if (step == 1 || step == -1) {
        while (last + 1 < size && world[last + 1] - world[last] == step) ++last;
      }
      at += (size_t)sprintf(text + at, "%s[%d,%d]", i ? "," : "", world[i], world[last]);
      i = last + 1;
    }
    text[at] = 0;
  } else {
    free(text);
    text = NULL;
  }
  free(own);
  free(world);
  PMPI_Group_free(&group);
  return text;
}

static void tell_comm(MPI_Comm comm, uint32_t id, uint32_t parent, const char* call, int order) {
  int inter = 0, rank = -1, size = 0;
  PMPI_Comm_test_inter(comm, &inter);
  PMPI_Comm_rank(comm, &rank);
  if (inter) {
    PMPI_Comm_remote_size(comm, &size);
  } else {
    PMPI_Comm_size(comm, &size);
  }
  lock();
  if (comm_count == comm_room) {
    Comm* more = realloc(comms, sizeof *comms * (size_t)(comm_room + 64));
    if (more) {
      comms = more;
      comm_room += 64;
    }
  }
  if (comm_count < comm_room)
    comms[comm_count++] = (Comm){KEY(comm), id, 0, rank, size, inter != 0};
  unlock();
  char* members = members_of(comm, false);
  char* remote = inter ? members_of(comm, true) : NULL;
  const size_t room = (members ? strlen(members) : 0) + (remote ? strlen(remote) : 0) + 256;
  char* text = members ? malloc(room) : NULL;
  if (text) {
    snprintf(text, room,
             "{\"id\":%u,\"parent\":%u,\"call\":\"%s\",\"order\":%d,\"rank\":%d,\"members\":[%s],%"
             "s%s%s\"name\":\"%s\"}",
             id, parent, call, order, rank, members, inter ? "\"remote\":[" : "",
             remote ? remote : "", inter ? "]," : "",
             id == WORLD  ? "MPI_COMM_WORLD"
             : id == SELF ? "MPI_COMM_SELF"
                          : "");
    record_tell_comm(text);
  }
  free(text);
  free(members);
  free(remote);
}

/* ---- helpers ---- */

static uint64_t bytes_of(int64_t count, MPI_Datatype type) {
  int size = 0;
  if (count <= 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS ||
      size < 0)
    return 0;
  return (uint64_t)count * (uint64_t)size;
}

#define sum_of(comm, counts, type)                           \
  ({                                                         \
    int64_t whole = 0;                                       \
    const int64_t many = peers_of(comm);                     \
    for (int64_t i = 0; i < many; ++i) whole += (counts)[i]; \
    bytes_of(whole, type);                                   \
  })
#define sum_of_types(comm, counts, types)                                          \
  ({                                                                               \
    uint64_t whole = 0;                                                            \
    const int64_t many = peers_of(comm);                                           \
    for (int64_t i = 0; i < many; ++i) whole += bytes_of((counts)[i], (types)[i]); \
    whole;                                                                         \
  })

static uint64_t bytes_that_came(const MPI_Status* status) {
  int count = 0;
  if (PMPI_Get_count(status, MPI_BYTE, &count) == MPI_SUCCESS && count != MPI_UNDEFINED)
    return (uint64_t)count;
#ifdef MPI_VERSION
  MPI_Count wide = 0;
  if (PMPI_Get_elements_x(status, MPI_BYTE, &wide) == MPI_SUCCESS && wide >= 0)
    return (uint64_t)wide;
#endif
  return 0;
}

static int told_peer(int rank) {
  return rank == MPI_PROC_NULL    ? RECORD_NONE
         : rank == MPI_ANY_SOURCE ? RECORD_ANY
         : rank == MPI_ROOT       ? RECORD_NONE
                                  : rank;
}
static int told_tag(int tag) { return tag == MPI_ANY_TAG ? RECORD_ANY : tag; }
static unsigned wild(int source, int tag) {
  return (source == MPI_ANY_SOURCE ? RECORD_ANY_SOURCE : 0u) |
         (tag == MPI_ANY_TAG ? RECORD_ANY_TAG : 0u);
}
static unsigned failed(int rc) { return rc == MPI_SUCCESS ? 0u : RECORD_FAILED; }

/* A call that may take long begins: what was written so far is safe if the job is ended in it. */
static uint64_t begin_blocking(RecordThread* me) {
  const uint64_t now = record_now();
  if (__builtin_expect(now - me->last_block > (uint64_t)(block_ns * record_ticks_per_ns), 0))
    record_write(me);
  if (__builtin_expect(now - me->delay_read > (uint64_t)(apart_ns * record_ticks_per_ns), 0)) {
    record_look_at_delay(me, now, now, 0);
    return record_now();
  }
  return now;
}

static void end_blocking(RecordThread* me, uint64_t begin, uint64_t end) {
  if (__builtin_expect(end - begin > (uint64_t)(long_ns * record_ticks_per_ns), 0))
    record_look_at_delay(me, begin, end, 1);
}

/* ---- point to point ---- */

#define CALL RecordThread *me, unsigned kind, uint32_t site, uint64_t begin, uint64_t end, int rc

static inline void told_send(CALL, int dest, int tag, uint64_t bytes, MPI_Comm comm) {
  record_put(me, kind, RECORD_SEND | failed(rc), site, begin, end, id_of(comm), told_peer(dest),
             tag, 0, bytes);
}

static uint32_t begun(int rc, unsigned kind, unsigned flags, MPI_Comm comm, int peer, int tag,
                      uint64_t bytes, const MPI_Request* request) {
  if (rc != MPI_SUCCESS) return 0;
  const uint32_t id = next_id();
  if (*request != MPI_REQUEST_NULL) {
    keep(KEY(*request), (Operation){.id = id,
                                    .kind = (uint16_t)kind,
                                    .flags = (uint8_t)flags,
                                    .active = true,
                                    .comm = id_of(comm),
                                    .peer = peer,
                                    .tag = tag,
                                    .bytes = bytes});
  }
  return id;
}

static inline void told_isend(CALL, int dest, int tag, uint64_t bytes, MPI_Comm comm,
                              MPI_Request* request) {
  const uint32_t id = begun(rc, kind, RECORD_SEND, comm, told_peer(dest), tag, bytes, request);
  record_put(me, kind, RECORD_SEND | failed(rc), site, begin, end, id_of(comm), told_peer(dest),
             tag, id, bytes);
}

static inline void told_recv(CALL, int source, int tag, MPI_Comm comm, const MPI_Status* status) {
  const bool came = rc == MPI_SUCCESS;
  record_put(me, kind, RECORD_RECEIVE | wild(source, tag) | failed(rc), site, begin, end,
             id_of(comm), told_peer(came ? status->MPI_SOURCE : source),
             told_tag(came ? status->MPI_TAG : tag), 0, came ? bytes_that_came(status) : 0);
}

static inline void told_irecv(CALL, int source, int tag, uint64_t bytes, MPI_Comm comm,
                              MPI_Request* request) {
  const unsigned flags = RECORD_RECEIVE | wild(source, tag);
  const uint32_t id =
      begun(rc, kind, flags, comm, told_peer(source), told_tag(tag), bytes, request);
  record_put(me, kind, flags | failed(rc), site, begin, end, id_of(comm), told_peer(source),
             told_tag(tag), id, bytes);
}

/* One request for both: two records with its number. */
static inline void told_isendrecv(CALL, int dest, int send_tag, uint64_t bytes, int source, int tag,
                                  uint64_t room, MPI_Comm comm, MPI_Request* request) {
  const unsigned flags = RECORD_RECEIVE | wild(source, tag);
  const uint32_t id = begun(rc, kind, flags, comm, told_peer(source), told_tag(tag), room, request);
  record_put(me, kind, RECORD_SEND | failed(rc), site, begin, end, id_of(comm), told_peer(dest),
             send_tag, id, bytes);
  record_put(me, kind, flags | failed(rc), site, begin, end, id_of(comm), told_peer(source),
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
      begun(rc, kind, RECORD_RECEIVE, MPI_COMM_NULL, RECORD_NONE, RECORD_NONE, message, request);
  record_put(me, kind, RECORD_RECEIVE | failed(rc), site, begin, end, 0, RECORD_NONE, RECORD_NONE,
             id, message);
}

static void told_vain(RecordThread* me, unsigned kind, uint32_t site, uint64_t begin,
                      uint64_t end) {
  if (me->off) return;
  RecordVain* vain = &me->vain;
  if (vain->count && (vain->site != site || vain->kind != kind || vain->count == INT_MAX))
    record_write_vain(me);
  if (!vain->count) *vain = (RecordVain){.site = site, .kind = (uint16_t)kind, .begin = begin};
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
  uint32_t id = 0;
  if (came && message != MPI_MESSAGE_NULL) {
    id = next_id();
#ifdef MPI_MESSAGE_NO_PROC
    if (message != MPI_MESSAGE_NO_PROC)
#endif
      keep(message_key(message),
           (Operation){.id = id, .kind = (uint16_t)kind, .flags = RECORD_RECEIVE});
  }
  record_put(me, kind, RECORD_RECEIVE | wild(source, tag) | failed(rc), site, begin, end,
             id_of(comm), told_peer(came ? status->MPI_SOURCE : source),
             told_tag(came ? status->MPI_TAG : tag), id, came ? bytes_that_came(status) : 0);
}

/* ---- persistent ---- */

static inline void told_init(CALL, unsigned flags, int peer, int tag, uint64_t bytes, MPI_Comm comm,
                             MPI_Request* request) {
  if (rc == MPI_SUCCESS) {
    if (flags & RECORD_RECEIVE) flags |= wild(peer, tag);
    keep(KEY(*request), (Operation){.kind = (uint16_t)kind,
                                    .flags = (uint8_t)flags,
                                    .persistent = true,
                                    .comm = id_of(comm),
                                    .peer = told_peer(peer),
                                    .tag = flags & RECORD_COLLECTIVE ? RECORD_NONE : told_tag(tag),
                                    .bytes = bytes});
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
        operation->id = next_id();
      }
      found = *operation;
    }
    unlock();
    record_put(me, kind, found.flags | failed(rc), site, begin, end, found.comm, found.peer,
               found.tag, found.id, found.bytes);
  }
}

/* ---- completion ---- */

enum { FEW = 32 };
typedef struct Keys {
  int64_t count,
      asked; /* `count` 0 without memory for a copy: then nothing is told of the completions */
  uint64_t* keys;
  MPI_Status* statuses;
  MPI_Status few_statuses[FEW];
  uint64_t few[FEW];
} Keys;

static uint64_t key_of_request(MPI_Request request) {
  return request == MPI_REQUEST_NULL ? 0 : KEY(request);
}

static void copy_keys(Keys* to, int64_t count, const MPI_Request* requests) {
  to->count = to->asked = count > 0 ? count : 0;
  to->statuses = NULL;
  to->keys = to->few;
  if (to->count > FEW && !(to->keys = malloc(sizeof *to->keys * (size_t)to->count))) {
    to->keys = to->few;
    to->count = 0;
  }
  for (int64_t i = 0; i < to->count; ++i) to->keys[i] = key_of_request(requests[i]);
}

static MPI_Status* room_for(Keys* keys, MPI_Status* given) {
  if (given != MPI_STATUSES_IGNORE) return given;
  if (keys->asked <= FEW) return keys->few_statuses;
  keys->statuses = malloc(sizeof *keys->statuses * (size_t)keys->asked);
  if (!keys->statuses) keys->count = 0;
  return keys->statuses ? keys->statuses : MPI_STATUSES_IGNORE;
}

static void free_keys(Keys* keys) {
  if (keys->keys != keys->few) free(keys->keys);
  free(keys->statuses);
}

static bool cancels; /* MPI_Cancel was called at least once */

/* Fills in a record's fields; false if that handle is of nothing known. */
static void put_completed(RecordThread* me, unsigned kind, uint32_t site, uint64_t begin,
                          uint64_t end, int rc, uint64_t key, const MPI_Status* status) {
  Operation found = {.peer = RECORD_NONE, .tag = RECORD_NONE};
  unsigned flags = failed(rc);
  uint64_t bytes = 0;
  if (take(key, &found) && found.persistent && !found.active) {
    found = (Operation){.peer = RECORD_NONE, .tag = RECORD_NONE}; /* it was over before */
  } else if (found.id) {
    flags |= found.flags;
    bytes = found.bytes;
    if (found.made) {
      const uint32_t parent = found.comm;
      if (rc == MPI_SUCCESS && *found.made != MPI_COMM_NULL) {
        tell_comm(*found.made, (uint32_t)found.bytes, parent, names[found.kind],
                  found.parent_order);
      }
      bytes = 0;
    }
    int cancelled = 0;
    if (cancels && !(flags & RECORD_COLLECTIVE)) PMPI_Test_cancelled(status, &cancelled);
    if (cancelled) {
      flags |= RECORD_FAILED;
    } else if ((found.flags & RECORD_RECEIVE) && rc == MPI_SUCCESS) {
      found.peer = told_peer(status->MPI_SOURCE);
      found.tag = told_tag(status->MPI_TAG);
      bytes = bytes_that_came(status);
    }
  }
  record_put(me, kind, flags, site, begin, end, found.comm, found.peer, found.tag, found.id, bytes);
}

static void put_none(RecordThread* me, unsigned kind, uint32_t site, uint64_t begin, uint64_t end,
                     int rc, int count) {
  record_put(me, kind, failed(rc), site, begin, end, 0, RECORD_NONE, count, 0, 0);
}

static inline void told_one(CALL, int flag, uint64_t key, const MPI_Status* status) {
  if (rc == MPI_SUCCESS && !flag) {
    told_vain(me, kind, site, begin, end);
  } else if (!key) {
    put_none(me, kind, site, begin, end, rc, 0);
  } else {
    put_completed(me, kind, site, begin, end, rc, key, status);
  }
}

static void told_all(CALL, int flag, const Keys* keys, const MPI_Request* requests,
                     const MPI_Status* statuses) {
  if (rc == MPI_SUCCESS && !flag) {
    told_vain(me, kind, site, begin, end);
    return;
  }
  /* After an error some may be pending: what is still there and not persistent is not over. */
  int64_t over = 0, last = -1;
  for (int64_t i = 0; i < keys->count; ++i) {
    if (!keys->keys[i] || (rc != MPI_SUCCESS && KEY(requests[i]) == keys->keys[i])) continue;
    ++over;
    last = i;
  }
  if (over == 1) {
    put_completed(me, kind, site, begin, end, rc, keys->keys[last], &statuses[last]);
    return;
  }
  put_none(me, kind, site, begin, end, rc, (int)over);
  for (int64_t i = 0; i < keys->count; ++i) {
    if (!keys->keys[i] || (rc != MPI_SUCCESS && KEY(requests[i]) == keys->keys[i])) continue;
    put_completed(me, RECORD_COMPLETION, site, begin, end,
                  rc == MPI_SUCCESS ? rc : statuses[i].MPI_ERROR, keys->keys[i], &statuses[i]);
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
    put_completed(me, RECORD_COMPLETION, site, begin, end,
                  rc == MPI_SUCCESS ? rc : statuses[i].MPI_ERROR, keys->keys[indices[i]],
                  &statuses[i]);
  }
}

/* A program of sessions alone has no world, and no rank in it. */
static void begin_without_world(void) {
  int there = 0, length = 0;
  if (PMPI_Initialized(&there) == MPI_SUCCESS && there) return;
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];
  PMPI_Get_library_version(version, &length);
  version[strcspn(version, "\n")] = 0;
  record_begin_file(-1, 0, version);
}

/* ---- collectives, communicators, the rest ---- */

static inline void told_coll(CALL, int root, uint64_t bytes, MPI_Comm comm) {
  record_put(me, kind, RECORD_COLLECTIVE | failed(rc), site, begin, end, id_of(comm),
             told_peer(root), RECORD_NONE, 0, bytes);
}

static inline void told_icoll(CALL, int root, uint64_t bytes, MPI_Comm comm, MPI_Request* request) {
  const uint32_t id =
      begun(rc, kind, RECORD_COLLECTIVE, comm, told_peer(root), RECORD_NONE, bytes, request);
  record_put(me, kind, RECORD_COLLECTIVE | failed(rc), site, begin, end, id_of(comm),
             told_peer(root), RECORD_NONE, id, bytes);
}

/* Its number among those made from its parent counts on all of the parent's ranks, also where there
   is none for this one; only MPI_Comm_create_group is not called by all: its number is its tag. */
static void told_new_comm(CALL, MPI_Comm parent, const MPI_Comm* made, MPI_Request* request) {
  uint32_t id = 0;
  if (rc == MPI_SUCCESS && parent == MPI_COMM_NULL && !request) begin_without_world();
  if (rc == MPI_SUCCESS) {
    int order = 0;
    lock();
    Comm* from = parent == MPI_COMM_NULL ? NULL : find_comm(parent);
    if (from && kind != K_MPI_Comm_create_group) order = from->creations++;
    if (*made != MPI_COMM_NULL || request) id = ++last_comm;
    unlock();
    if (request && *request != MPI_REQUEST_NULL) {
      keep(KEY(*request), (Operation){.id = next_id(),
                                      .kind = (uint16_t)kind,
                                      .flags = RECORD_COLLECTIVE,
                                      .active = true,
                                      .comm = id_of(parent),
                                      .peer = RECORD_NONE,
                                      .tag = RECORD_NONE,
                                      .bytes = id,
                                      .made = (MPI_Comm*)made,
                                      .parent_order = order});
    } else if (*made != MPI_COMM_NULL) {
      tell_comm(*made, id, id_of(parent), names[kind], order);
    }
  }
  record_put(me, kind, RECORD_COLLECTIVE | failed(rc), site, begin, end, id_of(parent), RECORD_NONE,
             RECORD_NONE, id, 0);
}

static inline void told_rma(CALL, int peer, uint64_t bytes, MPI_Request* request) {
  uint32_t id = 0;
  if (request) id = begun(rc, kind, 0, MPI_COMM_NULL, told_peer(peer), RECORD_NONE, bytes, request);
  record_put(me, kind, failed(rc), site, begin, end, 0, told_peer(peer), RECORD_NONE, id, bytes);
}

static inline void told_other(CALL, uint64_t bytes) {
  record_put(me, kind, failed(rc), site, begin, end, 0, RECORD_NONE, RECORD_NONE, 0, bytes);
}

/* ---- large counts over an MPI without them ---- */

static void hold(void* a, void* b, void* c, void* d) {
  void* const lists[4] = {a, b, c, d};
  memcpy(to_hold, lists, sizeof lists);
}

/* What no known operation holds: of one that was not begun it goes, of one that is not followed it
 * stays for ever. */
static void release_unheld(int rc) {
  for (int i = 0; i < 4 && rc != MPI_SUCCESS; ++i) free(to_hold[i]);
  memset(to_hold, 0, sizeof to_hold);
}

/* MPI_Count and MPI_Aint are of the same size here, or the narrower one is read as such. */
static int* narrow(bool* fits, const void* wide, int64_t count, size_t size) {
  int* list = wide ? malloc(sizeof *list * (size_t)(count > 0 ? count : 1)) : NULL;
  if (wide && !list) *fits = false;
  for (int64_t i = 0; list && i < count; ++i) {
    const int64_t value = size == 8 ? ((const int64_t*)wide)[i] : ((const int32_t*)wide)[i];
    *fits = *fits && value >= INT_MIN && value <= INT_MAX;
    list[i] = (int)value;
  }
  return list;
}

static void count_peers(MPI_Comm comm, int64_t* in, int64_t* out) {
  int size = 0, inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter) {
    PMPI_Comm_remote_size(comm, &size);
  } else {
    PMPI_Comm_size(comm, &size);
  }
  *in = *out = size;
}

static void count_neighbours(MPI_Comm comm, int64_t* in, int64_t* out) {
  int kind = MPI_UNDEFINED, a = 0, b = 0, weighted = 0, rank = 0;
  PMPI_Topo_test(comm, &kind);
  if (kind == MPI_DIST_GRAPH) {
    PMPI_Dist_graph_neighbors_count(comm, &a, &b, &weighted);
  } else if (kind == MPI_GRAPH) {
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &a);
    b = a;
  } else if (kind == MPI_CART) {
    PMPI_Cartdim_get(comm, &a);
    a = b = 2 * a;
  }
  *in = a;
  *out = b;
}

static int too_large(MPI_Comm comm) {
  PMPI_Comm_call_errhandler(comm, MPI_ERR_COUNT);
  return MPI_ERR_COUNT;
}

/* ---- by hand ---- */

static void begin_world(void) {
  static bool begun_already;
  if (begun_already) return;
  begun_already = true;
  int rank = -1, size = 0, length = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];
  PMPI_Get_library_version(version, &length);
  version[strcspn(version, "\n")] = 0;
  record_begin_file(rank, size, version);
  tell_comm(MPI_COMM_WORLD, WORLD, 0, "MPI_Init", 0);
  tell_comm(MPI_COMM_SELF, SELF, 0, "MPI_Init", 0);
}

static void told_started(RecordThread* me, unsigned kind, uint32_t site, uint64_t begin, int rc,
                         int provided) {
  const uint64_t end = record_now();
  several = provided == MPI_THREAD_MULTIPLE;
  record_put(me, kind, failed(rc), site, begin, end, 0, RECORD_NONE, RECORD_NONE, 0, 0);
  if (rc == MPI_SUCCESS) begin_world();
}

ENTRY int layer_MPI_Init(int* argc, char*** argv) {
  RecordThread* me = record_enter(K_MPI_Init);
  if (!me) return PMPI_Init(argc, argv);
  const uint32_t site = SITE;
  const uint64_t begin = record_now();
  const int rc = PMPI_Init(argc, argv);
  told_started(me, K_MPI_Init, site, begin, rc, MPI_THREAD_SINGLE);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  RecordThread* me = record_enter(K_MPI_Init_thread);
  if (!me) return PMPI_Init_thread(argc, argv, required, provided);
  const uint32_t site = SITE;
  const uint64_t begin = record_now();
  const int rc = PMPI_Init_thread(argc, argv, required, provided);
  told_started(me, K_MPI_Init_thread, site, begin, rc,
               rc == MPI_SUCCESS ? *provided : MPI_THREAD_SINGLE);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Finalize(void) {
  RecordThread* me = record_me ? record_me : record_first_call();
  if (!me || me->depth) return PMPI_Finalize();
  me->depth = 1;
  const uint32_t site = SITE;
  const uint64_t begin = record_now();
  if (world_group != MPI_GROUP_NULL) PMPI_Group_free(&world_group);
  const int rc = PMPI_Finalize();
  me->off = !record_wanted[K_MPI_Finalize];
  told_other(me, K_MPI_Finalize, site, begin, record_now(), rc, 0);
  record_end_file(1);
  record_leave(me);
  return rc;
}

#ifdef HAVE_MPI_Session_init
ENTRY int layer_MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  RecordThread* me = record_enter(K_MPI_Session_init);
  if (!me) return PMPI_Session_init(info, errhandler, session);
  const uint32_t site = SITE;
  const uint64_t begin = record_now();
  const int rc = PMPI_Session_init(info, errhandler, session);
  several = true; /* whatever threads it was asked for */
  told_other(me, K_MPI_Session_init, site, begin, record_now(), rc, 0);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Session_finalize(MPI_Session* session) {
  RecordThread* me = record_enter(K_MPI_Session_finalize);
  if (!me) return PMPI_Session_finalize(session);
  const uint32_t site = SITE;
  const uint64_t begin = record_now();
  const int rc = PMPI_Session_finalize(session);
  told_other(me, K_MPI_Session_finalize, site, begin, record_now(), rc, 0);
  record_finalized = rc == MPI_SUCCESS;
  record_leave(me);
  return rc;
}
#endif

ENTRY int layer_MPI_Comm_free(MPI_Comm* comm) {
  RecordThread* me = record_enter(K_MPI_Comm_free);
  if (!me) return PMPI_Comm_free(comm);
  const uint32_t site = SITE, id = id_of(*comm);
  forget_comm(*comm);
  const uint64_t begin = begin_blocking(me);
  const int rc = PMPI_Comm_free(comm);
  const uint64_t end = record_now();
  record_put(me, K_MPI_Comm_free, failed(rc), site, begin, end, id, RECORD_NONE, RECORD_NONE, 0, 0);
  end_blocking(me, begin, end);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Comm_disconnect(MPI_Comm* comm) {
  RecordThread* me = record_enter(K_MPI_Comm_disconnect);
  if (!me) return PMPI_Comm_disconnect(comm);
  const uint32_t site = SITE, id = id_of(*comm);
  forget_comm(*comm);
  const uint64_t begin = begin_blocking(me);
  const int rc = PMPI_Comm_disconnect(comm);
  const uint64_t end = record_now();
  record_put(me, K_MPI_Comm_disconnect, failed(rc), site, begin, end, id, RECORD_NONE, RECORD_NONE,
             0, 0);
  end_blocking(me, begin, end);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Comm_set_name(MPI_Comm comm, const char* name) {
  RecordThread* me = record_enter(K_MPI_Comm_set_name);
  if (!me) return PMPI_Comm_set_name(comm, name);
  const int rc = PMPI_Comm_set_name(comm, name);
  const uint32_t id = id_of(comm);
  if (rc == MPI_SUCCESS && id) {
    char text[MPI_MAX_OBJECT_NAME * 6 + 64], told[MPI_MAX_OBJECT_NAME * 6 + 8];
    record_append_json(told, sizeof told, name);
    snprintf(text, sizeof text, "{\"id\":%u,\"name\":\"%s\"}", id, told);
    record_tell_comm(text);
  }
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Request_free(MPI_Request* request) {
  RecordThread* me = record_enter(K_MPI_Request_free);
  if (!me) return PMPI_Request_free(request);
  const uint32_t site = SITE;
  Operation found = {0};
  const uint64_t key = key_of_request(*request);
  if (key && look_up(key, &found)) forget(key);
  const uint64_t begin = record_now();
  const int rc = PMPI_Request_free(request);
  record_put(me, K_MPI_Request_free, failed(rc), site, begin, record_now(), found.comm, RECORD_NONE,
             RECORD_NONE, found.active || !found.persistent ? found.id : 0, 0);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Cancel(MPI_Request* request) {
  RecordThread* me = record_enter(K_MPI_Cancel);
  if (!me) return PMPI_Cancel(request);
  const uint32_t site = SITE;
  const uint64_t begin = record_now();
  Operation found = {0};
  look_up(key_of_request(*request), &found);
  const int rc = PMPI_Cancel(request);
  cancels = true;
  record_put(me, K_MPI_Cancel, failed(rc), site, begin, record_now(), 0, RECORD_NONE, RECORD_NONE,
             found.id, 0);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Pcontrol(const int level, ...) {
  record_level(level);
  return PMPI_Pcontrol(level);
}

ENTRY int layer_MPI_Abort(MPI_Comm comm, int code) {
  RecordThread* me = record_enter(K_MPI_Abort);
  if (me) {
    const uint32_t site = SITE;
    const uint64_t now = record_now();
    record_put(me, K_MPI_Abort, 0, site, now, now, id_of(comm), RECORD_NONE, RECORD_NONE, 0, 0);
    record_leave(me);
    record_flush();
  }
  return PMPI_Abort(comm, code);
}

#define PLAIN(name, parameters, arguments)             \
  ENTRY int layer_##name parameters {                  \
    RecordThread* me = record_enter(K_##name);         \
    if (!me) return P##name arguments;                 \
    const uint32_t site = SITE;                        \
    const uint64_t begin = begin_blocking(me);         \
    const int rc = P##name arguments;                  \
    const uint64_t end = record_now();                 \
    told_other(me, K_##name, site, begin, end, rc, 0); \
    end_blocking(me, begin, end);                      \
    record_leave(me);                                  \
    return rc;                                         \
  }

PLAIN(MPI_Buffer_detach, (void* buffer, int* size), (buffer, size))
#ifdef HAVE_MPI_Buffer_detach_c
PLAIN(MPI_Buffer_detach_c, (void* buffer, MPI_Count* size), (buffer, size))
#else
#define HAVE_MPI_Buffer_detach_c 1
ENTRY int layer_MPI_Buffer_detach_c(void* buffer, MPI_Count* size) {
  int narrow_size = 0;
  const int rc = layer_MPI_Buffer_detach(buffer, &narrow_size);
  *size = narrow_size;
  return rc;
}
#endif
#ifdef HAVE_MPI_Pready
PLAIN(MPI_Pready, (int partition, MPI_Request request), (partition, request))
PLAIN(MPI_Pready_range, (int low, int high, MPI_Request request), (low, high, request))
PLAIN(MPI_Pready_list, (int length, const int* partitions, MPI_Request request),
      (length, partitions, request))
#endif

#include "layer_entries.inc"

__attribute__((visibility("default")))
const RecordLayer record_layer = {RECORD_LAYER_VERSION, RECORD_FUNCTIONS, layer_entries};

__attribute__((constructor)) static void layer_start(void) { world_group = MPI_GROUP_NULL; }
