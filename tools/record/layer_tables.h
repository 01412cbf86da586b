/* layer_tables: what a layer knows of requests and communicators, by their handles. Part of
   layer.c. Thread: any, one at a time (`lock`); of operations and slots others see a copy of
   whatever moment (now.h). Owner: the layer. Invariant: a number stands for one operation, and one
   communicator, for ever. */
#ifndef HEADWAY_RECORD_LAYER_TABLES_H
#define HEADWAY_RECORD_LAYER_TABLES_H

/* ---- tables, by handle ---- */

/* MPI may give several operations that are over one handle, and an old handle to a new operation
   while another thread still learns that the old one is over: so a handle has a row of them, and
   the oldest is the one that ends. Up to `bytes` as docs/recording-format.md says. */
typedef struct Operation {
  uint32_t id, next; /* in its row, or of the free ones; 0: the last one */
  uint16_t kind;     /* of the call that made it */
  uint8_t flags;
  bool persistent, active;
  bool rare; /* more is to be done at its end than to tell it: persistent, or there is `more` */
  uint32_t comm;
  int peer, tag;
  uint32_t number; /* as RecordWait has it; 0: not counted */
  uint64_t bytes;
  RecordMemo* memo; /* by which it was begun; never null, and it holds if it has this serial: */
  uint64_t serial;
  struct More* more; /* or null; only of one that is rare */
} Operation;

typedef struct More {
  void** held;    /* lists that it reads until its end, four or null; freed then */
  MPI_Comm* made; /* of MPI_Comm_idup */
  int parent_order;
} More;

/* Where the last operation of a handle is over it stays there (`last` is 0), for the next one that
   is looked for from there: mostly the handle comes again, or one that differs in its high half, as
   of MPIs that count in it how often a handle was given. */
typedef struct Slot {
  uint64_t key;
  uint32_t first, last; /* 0: empty */
} Slot;
_Static_assert(sizeof(Operation) == 64 && offsetof(Operation, bytes) == 32 && sizeof(Slot) == 16,
               "as documented");
/* A memo has these as they lie here. */
enum { BEGUN_BYTES = 48 };
_Static_assert(offsetof(Operation, kind) == 8 && offsetof(Operation, memo) == 40 &&
                   offsetof(Operation, serial) == 48 &&
                   offsetof(RecordMemo, memo) == offsetof(RecordMemo, operation) + 32 &&
                   offsetof(RecordMemo, serial) == offsetof(RecordMemo, operation) + 40,
               "copied as one");

enum { NO_MEMO = 1 }; /* the serial of operations that no memo has begun */
static RecordMemo no_memo;
static Operation nobody[1] = {{.memo = &no_memo, .serial = NO_MEMO}};
static Slot no_slots[1] = {{.key = UINT64_MAX}};
static Slot* slots = no_slots;
static size_t slot_count, slot_mask, slot_used; /* those of operations that are over, too */
static uint64_t slots_at;                       /* in the memory that others see */
static Operation* operations = nobody;
static uint32_t operation_room, operation_free;
static uint64_t operations_at;
static uint32_t last_id, last_comm = SELF;
/* Far enough from the end for all that threads number on the quick way before one of them comes
   here again, at the latest for its next block. */
#define MOST_ID (UINT32_MAX - (1u << 24))
static bool several; /* threads may be here at once */
/* Handles with one low half were there at once, of one of which there may be several operations:
   from now on no memo is made. */
static bool has_twins;
static char gate;

#define RARE __attribute__((noinline, cold))

RARE static void wait_at_gate(void) {
  do sched_yield();
  while (__atomic_test_and_set(&gate, __ATOMIC_ACQUIRE));
}
/* Whether there is a lock: what `unlock_if` is given, where that is not to be looked for again. */
ENTRY bool lock(void) {
  const bool is_held = several;
  if (__builtin_expect(is_held, 0) && __atomic_test_and_set(&gate, __ATOMIC_ACQUIRE))
    wait_at_gate();
  return is_held;
}
ENTRY void unlock_if(bool is_held) {
  if (__builtin_expect(is_held, 0)) __atomic_clear(&gate, __ATOMIC_RELEASE);
}
ENTRY void unlock(void) { unlock_if(several); }

static void begin_several(void) {
  several = true;
  record_forget_memos();
  record_now_page->several = 1;
}

/* Of the operation that this thread is about to begin; looked at only once an MPI without large
 * counts got some. */
static __thread void** to_hold;
static bool narrows;

static void free_lists(void** lists) {
  for (int i = 0; lists && i < 4; ++i) free(lists[i]);
  free(lists);
}

static void free_more(More* more) {
  if (!more) return;
  free_lists(more->held);
  free(more);
}

ENTRY size_t place(uint64_t key) {
  return (size_t)((uint64_t)(uint32_t)key * 0x61c88647 >> 20) & slot_mask;
}

static inline Slot* find_slot(uint64_t key) {
  for (size_t at = place(key); slots[at].first; at = (at + 1) & slot_mask) {
    if (slots[at].key == key) return slots[at].last ? &slots[at] : NULL;
  }
  return NULL;
}

ENTRY void free_operation(uint32_t at) {
  operations[at].next = operation_free;
  operation_free = at;
}

/* A key that is looked for from another slot than the first, as 0 is not: that of an empty slot is
   never one that is looked for there. */
static uint64_t elsewhere(void) {
  uint64_t key = 1;
  while (place(key) == 0) ++key;
  return key;
}

/* Without those that are over; larger, if the rest needs it. */
RARE static bool grow_slots(void) {
  const size_t was = slot_count;
  size_t kept = 0;
  for (size_t i = 0; i < was; ++i) kept += slots[i].last != 0;
  const size_t now = !was ? 1024 : kept * 4 > was ? was * 2 : was;
  const uint64_t was_at = slots_at;
  Slot* old = slots;
  Slot* larger = record_now_room(now * sizeof *larger, &slots_at);
  if (!larger) {
    slots_at = was_at;
    return false;
  }
  slots = larger;
  slot_count = now;
  slot_mask = now - 1;
  slot_used = kept;
  slots[0].key = elsewhere();
  for (size_t i = 0; i < was; ++i) {
    if (old[i].last) {
      size_t at = place(old[i].key);
      while (slots[at].first) at = (at + 1) & slot_mask;
      slots[at] = old[i];
    } else if (old[i].first) {
      free_operation(old[i].first);
    }
  }
  record_now_page->slots_at = slots_at;
  record_now_page->slots = now;
  if (old != no_slots) record_now_give_back(old, was * sizeof *old, was_at);
  return true;
}

/* The first operation of that row is over. */
static inline void drop_first(Slot* slot) {
  const uint32_t at = slot->first;
  if (__builtin_expect(at == slot->last, 1)) {
    slot->last = 0;
    return;
  }
  slot->first = operations[at].next;
  free_operation(at);
}

/* More of them, if there is memory. Index 0 is nobody. */
RARE static void grow_operations(void) {
  const uint32_t now = operation_room ? operation_room * 2 : 1024;
  uint64_t at;
  Operation* more = record_now_room(now * sizeof *more, &at);
  if (!more) return;
  memcpy(more, operations, (operation_room ? operation_room : 1) * sizeof *more);
  record_now_page->operations_at = at;
  record_now_page->operations = now;
  if (operation_room)
    record_now_give_back(operations, operation_room * sizeof *more, operations_at);
  operations = more;
  operations_at = at;
  for (uint32_t i = operation_room ? operation_room : 1; i < now; ++i) {
    operations[i].next = operation_free;
    operation_free = i;
  }
  operation_room = now;
}

/* 0: no memory; then that operation's end is not known. */
ENTRY uint32_t new_operation(void) {
  if (__builtin_expect(!operation_free, 0)) grow_operations();
  const uint32_t found = operation_free;
  if (__builtin_expect(!found, 0)) return 0;
  operation_free = operations[found].next;
  return found;
}

/* Locked. */
ENTRY uint32_t next_id_locked(void) {
  last_id = __builtin_expect(last_id < MOST_ID, 1) ? last_id + 1 : 1;
  return last_id;
}

static uint32_t next_id(void) {
  const bool many = lock();
  const uint32_t id = next_id_locked();
  unlock_if(many);
  return id;
}

RARE static void note_twins(void) {
  if (!has_twins) record_forget_memos();
  has_twins = true;
}

/* A new operation of that handle, the last of its row; null without memory. The lock is held until
 * the caller has filled it in. */
ENTRY Operation* add_operation(uint64_t key) {
  if (__builtin_expect(slot_used * 2 >= slot_count, 0) && !grow_slots()) return NULL;
  const size_t home = place(key);
  size_t to = home;
  while (slots[to].first && slots[to].key != key) {
    if (__builtin_expect((uint32_t)slots[to].key == (uint32_t)key && slots[to].last, 0))
      note_twins();
    to = (to + 1) & slot_mask;
  }
  if (!slots[to].first && slots[home].first && !slots[home].last) to = home;
  Slot* slot = &slots[to];
  if (__builtin_expect(slot->first != 0 && slot->last == 0, 1)) {
    slot->key = key;
    slot->last = slot->first;
    return &operations[slot->first];
  }
  const uint32_t at = new_operation();
  if (__builtin_expect(!at, 0)) return NULL;
  if (__builtin_expect(slot->first != 0, 0)) {
    operations[slot->last].next = at;
    slot->last = at;
  } else {
    *slot = (Slot){key, at, at};
    ++slot_used;
  }
  return &operations[at];
}

/* What is rare of an operation; null if nothing is, or without memory: then it is not told. Of an
 * MPI that has no large counts that is also what it is to hold until its end. */
__attribute__((noinline)) static More* more_now(MPI_Comm* made, int parent_order) {
  void** held = narrows ? to_hold : NULL;
  if (held) to_hold = NULL;
  if (!held && !made) return NULL;
  More* more = malloc(sizeof *more);
  if (more) *more = (More){held, made, parent_order};
  return more;
}

/* The oldest operation of that handle: taken out, with what is rare of it, unless it is persistent:
 * then it is inactive from now on. */
static bool take(uint64_t key, Operation* found) {
  lock();
  Slot* slot = find_slot(key);
  if (slot) {
    const uint32_t at = slot->first;
    *found = operations[at];
    if (found->persistent) {
      operations[at].active = false;
    } else {
      operations[at].more = NULL;
      drop_first(slot);
    }
  }
  unlock();
  return slot != NULL;
}

static void forget(uint64_t key) {
  lock();
  Slot* slot = find_slot(key);
  if (slot) {
    free_more(operations[slot->first].more);
    operations[slot->first].more = NULL;
    drop_first(slot);
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

/* Of layer_now.h: its messages and collectives are counted. */
static void begin_counts(uint32_t comm);
static void end_counts(uint32_t comm);

typedef struct Comm {
  uint64_t key;
  uint32_t id;
  int creations, rank, size; /* communicators that were made from it; who this process is in it */
  uint32_t persistent;       /* persistent collectives that were made on it */
  bool inter;
} Comm;

static Comm* comms; /* few, in no order */
static int comm_count, comm_room;

static int recent; /* the one that was found last; programs use one again and again */

static Comm* find_comm(MPI_Comm comm) {
  if (recent < comm_count && comms[recent].key == KEY(comm)) return &comms[recent];
  for (int i = comm_count; i-- > 0;) {
    if (comms[i].key != KEY(comm)) continue;
    recent = i;
    return &comms[i];
  }
  return NULL;
}

static inline uint32_t id_of(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD) return WORLD;
  if (comm == MPI_COMM_SELF) return SELF;
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
  if (found) {
    end_counts(found->id);
    record_forget_memos();
    *found = comms[--comm_count];
  }
  unlock();
}

static Comm about(MPI_Comm comm) {
  lock();
  const Comm* found = find_comm(comm);
  const Comm copy = found ? *found : (Comm){.rank = -1};
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
  /* One of that handle was freed where nobody looked, as in a callback of another call. */
  forget_comm(comm);
  lock();
  if (comm_count == comm_room) {
    Comm* more = realloc(comms, sizeof *comms * (size_t)(comm_room + 64));
    if (more) {
      comms = more;
      comm_room += 64;
    }
  }
  if (comm_count < comm_room)
    comms[comm_count++] =
        (Comm){.key = KEY(comm), .id = id, .rank = rank, .size = size, .inter = inter != 0};
  begin_counts(id);
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

#endif
