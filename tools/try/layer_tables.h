/* layer_tables: what a try's layer knows of operations under way, by their requests. Part of
   layer.c. Thread: any, one at a time (`lock`). Owner: the layer. Invariant: what the program may
   still receive is in the list of active ones with the memory that it may write, or else counted as
   a writer that is not seen. */
#ifndef HEADWAY_TRY_LAYER_TABLES_H
#define HEADWAY_TRY_LAYER_TABLES_H

enum { BUCKETS = 1 << 12, MOST_COMMS = 1 << 12 };

enum What {
  SENDS,     /* an MPI_Isend */
  RECEIVES,  /* also persistent ones, between their starts */
  COLLECTIVE /* which writes where is not looked at */
};

typedef struct Operation {
  struct Operation* next;            /* of its bucket, in the order of their beginning */
  struct Operation *before, *behind; /* active receives */
  uint64_t key;
  enum What what;
  bool active, persistent, cancelled;
  TryRange bytes;
  TryEnvelope envelope; /* of a send */
  /* Of a receive whose bytes are told. */
  void* buffer;
  int64_t count;
  MPI_Datatype type;
  bool own_type; /* a copy, since the program may free its own */
  uint32_t comm;
  int source, tag;
  uint64_t weight;
} Operation;

static Operation* buckets[BUCKETS];
static Operation* free_operations;
static Operation active = {.before = &active, .behind = &active}; /* ring of active receives */
static unsigned under_way;         /* sends and active receives, for who tests */
static unsigned unseen;            /* collectives under way */
static enum TryRefusal blind_from; /* since when writers are not seen: why; TRY_MAY: they are */
static bool cancels;               /* MPI_Cancel was called */
static char gate;

static void lock(void) {
  while (__atomic_test_and_set(&gate, __ATOMIC_ACQUIRE)) sched_yield();
}
static void unlock(void) { __atomic_clear(&gate, __ATOMIC_RELEASE); }

/* Times are the same with and without: the unchanged run looks at nothing if it tells no bytes. */
static bool follows(void) { return try_plan.hash || try_plan.mode != TRY_UNCHANGED; }

/* ---- memory ---- */

static TryRange range_of(const void* buffer, int64_t count, MPI_Datatype type) {
  MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
  const uintptr_t begin = (uintptr_t)buffer;
  if (!follows() || count <= 0 || type == MPI_DATATYPE_NULL ||
      PMPI_Type_get_true_extent(type, &true_low, &true_extent) != MPI_SUCCESS ||
      PMPI_Type_get_extent(type, &low, &extent) != MPI_SUCCESS)
    return (TryRange){begin, begin};
  const int64_t steps = (count - 1) * (int64_t)extent;
  const uintptr_t first = begin + (uintptr_t)true_low + (uintptr_t)(steps < 0 ? steps : 0);
  return (TryRange){first,
                    first + (uintptr_t)true_extent + (uintptr_t)(steps < 0 ? -steps : steps)};
}

/* ---- operations; locked ---- */

static Operation** bucket_of(uint64_t key) { return &buckets[(key * 0x9e3779b97f4a7c15u) >> 52]; }

static Operation* find(uint64_t key) {
  for (Operation* one = *bucket_of(key); one; one = one->next) {
    if (one->key == key) return one;
  }
  return NULL;
}

/* Handles may be used again, and one may stand for several that were over at once: the oldest one
   is the one that ends. Never null: without memory nothing that is tried can go on. */
static Operation* add(MPI_Request request, enum What what) {
  Operation* one = free_operations;
  if (one) {
    free_operations = one->next;
  } else {
    one = malloc(sizeof *one);
    if (!one) try_give_up("no memory");
  }
  memset(one, 0, sizeof *one);
  one->key = KEY(request);
  one->what = what;
  Operation** last = bucket_of(one->key);
  while (*last) last = &(*last)->next;
  *last = one;
  return one;
}

static void activate(Operation* one) {
  one->active = true;
  if (one->what == COLLECTIVE) {
    ++unseen;
    return;
  }
  ++under_way;
  if (one->what != RECEIVES) return;
  one->before = active.before;
  one->behind = &active;
  active.before->behind = one;
  active.before = one;
}

static void end(Operation* one) {
  if (!one->active) return;
  one->active = false;
  if (one->what == COLLECTIVE) {
    --unseen;
    return;
  }
  --under_way;
  if (one->what != RECEIVES) return;
  one->before->behind = one->behind;
  one->behind->before = one->before;
}

static void forget(Operation* one) {
  end(one);
  if (one->own_type) PMPI_Type_free(&one->type);
  Operation** link = bucket_of(one->key);
  while (*link != one) link = &(*link)->next;
  *link = one->next;
  one->next = free_operations;
  free_operations = one;
}

static bool is_received_into(TryRange bytes) {
  bool found = false;
  lock();
  for (const Operation* one = active.behind; one != &active && !found; one = one->behind)
    found = try_shares_pages(one->bytes, bytes);
  unlock();
  return found;
}

/* From now on there are writers that are not seen. */
static void blind(enum TryRefusal why) {
  if (blind_from == TRY_MAY) blind_from = why;
  try_end_all(TRY_AT_OTHER);
}

/* ---- communicators ---- */

static struct {
  uint64_t key;
  uint32_t id;
} comms[MOST_COMMS];
static unsigned comm_count;
static uint32_t last_comm = 2; /* 1 is the world, 2 this process alone */

/* Locked. Numbered in the order in which the program first received, or was in a collective, on
 * them. */
static uint32_t id_of(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD) return 1;
  if (comm == MPI_COMM_SELF) return 2;
  for (unsigned i = comm_count; i-- > 0;) {
    if (comms[i].key == KEY(comm)) return comms[i].id;
  }
  if (comm_count == MOST_COMMS) return 0;
  comms[comm_count].key = KEY(comm);
  comms[comm_count].id = ++last_comm;
  return comms[comm_count++].id;
}

static void forget_comm(MPI_Comm comm) {
  lock();
  for (unsigned i = 0; i < comm_count; ++i) {
    if (comms[i].key == KEY(comm)) comms[i] = comms[--comm_count];
  }
  unlock();
}

#endif
