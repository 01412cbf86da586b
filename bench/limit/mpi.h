// The limit: what processes of this machine can do at most by two copies, behind the few calls that
// latency.c, bandwidth.c, peers.c and collective.c make. Those are compiled with this header as if
// it were an MPI's, so that the limit is measured by the same program, over the same buffers, as
// every contestant. A message is copied into memory that two processes share, and out of them by
// the other one, in the order of the sends: no envelope, no matching, no tags, no waiting but
// spinning; where they outnumber the cores, whoever finds nothing to do gives its core to another.
// One pipe for each direction between each two; they are one process that forks in MPI_Init
// (--limit-ranks N, else two). Small messages lie in the line that announces them, the others in
// four cells of 32 KB, which the caches hold; where ranks outnumber the cores, several in a cell,
// so that there is enough to do for one while another waits for a core. Thread: one in each
// process, which owns its ends of the pipes. Invariant: an entry's word is 0 while the sender may
// write it, else the bytes in it plus 1; the space of a piece is free once the entry that announced
// it is.
#pragma once
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct LimitOperation* MPI_Request;
typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Status;
enum { MPI_COMM_WORLD = 1 };
enum { MPI_BYTE = 1, MPI_INT = sizeof(int), MPI_DOUBLE = sizeof(double) };  // a type is its bytes
#define MPI_STATUS_IGNORE ((MPI_Status*)0)
#define MPI_STATUSES_IGNORE ((MPI_Status*)0)
#define MPI_REQUEST_NULL ((MPI_Request)0)

enum {
  limit_entries = 64,
  limit_inline = 60,  // bytes beside an entry's word
  limit_piece = 32 << 10,
  limit_space = 4 * limit_piece,
  limit_crowded_step = 128,  // between short pieces: others have to go on while one has the core
  limit_operations = 256,    // that are not complete, of one pipe
  limit_most_ranks = 16,
  limit_patience = 1 << 16,       // looks in vain until another one may have this core
  limit_crowded_patience = 4,     // the same where ranks outnumber the cores
  limit_yields_until_a_look = 64  // at whether the other processes are still there
};

struct LimitEntry {
  _Alignas(128) atomic_uint word;
  char bytes[limit_inline];
};

struct LimitPipe {
  struct LimitEntry entries[limit_entries];
  // Half a page from where allocators put large buffers: copies between addresses that are close in
  // their last twelve bits are slow.
  _Alignas(4096) char space[limit_space + 2048];
};

struct LimitOperation {
  char* memory;
  const double* addends;  // of a receive, or none: they are added to what arrives
  size_t bytes, moved;
  int is_done;
};

// Operations of one direction, oldest first, and this process's end of its pipe.
struct LimitSide {
  struct LimitPipe* pipe;
  unsigned entry;  // the next one, counted over all laps
  size_t at;       // the same of the space
  // Sender: pieces, counted, the oldest one that may not be free, and what is free for certain.
  unsigned piece, oldest;
  size_t free_until;
  struct {
    unsigned entry;
    size_t end;
  } pieces[limit_entries];
  struct LimitOperation operations[limit_operations];
  unsigned first, end;  // of operations, counted over all laps
};

struct LimitPeer {
  struct LimitSide out, in;
};

static struct LimitPeer limit_peers[limit_most_ranks];  // all ranks but this one, in their order
static int limit_rank, limit_ranks = 2;
static unsigned limit_looks = limit_patience;
static size_t limit_step = limit_piece;  // what a short piece begins at a multiple of
static int limit_children;               // of rank 0: processes whose end it has not seen

static inline void limit_fail(const char* what) {
  fprintf(stderr, "limit: %s\n", what);
  _exit(3);
}

static inline struct LimitPeer* limit_peer(int rank) {
  if (rank < 0 || rank >= limit_ranks || rank == limit_rank) limit_fail("there is no such partner");
  return &limit_peers[rank < limit_rank ? rank : rank - 1];
}

static inline struct LimitOperation* limit_begin(struct LimitSide* side, const void* memory,
                                                 size_t bytes) {
  if (side->end - side->first == limit_operations) limit_fail("too many operations at a time");
  struct LimitOperation* operation = &side->operations[side->end++ % limit_operations];
  operation->memory = (char*)memory;
  operation->addends = NULL;
  operation->bytes = bytes;
  operation->moved = 0;
  operation->is_done = 0;
  return operation;
}

// Where a piece of n bytes begins, if `at` is the first that may be: whole in the space. Four of
// them fit, or as many as there is room for. Both sides come to the same.
static inline size_t limit_place(size_t at, size_t n) {
  size_t step = n > limit_piece / 2 ? (size_t)limit_piece : limit_step;
  at = (at + step - 1) & ~(step - 1);
  return at % limit_space + n > limit_space ? (at / limit_space + 1) * limit_space : at;
}

static inline char* limit_memory(struct LimitPipe* pipe, size_t place) {
  return pipe->space + 2048 + place % limit_space;
}

static inline void limit_free_oldest(struct LimitSide* side) {
  side->free_until = side->pieces[side->oldest++ % limit_entries].end;
}

// Whether the space up to `end` may be written, a lap after what was there.
static inline int limit_has_room(struct LimitSide* side, size_t end) {
  for (; end - side->free_until > limit_space && side->oldest != side->piece;
       limit_free_oldest(side)) {
    unsigned entry = side->pieces[side->oldest % limit_entries].entry;
    // Of one that was announced a lap ago the entry has been free since.
    if (side->entry - entry < limit_entries &&
        atomic_load_explicit(&side->pipe->entries[entry % limit_entries].word,
                             memory_order_acquire))
      return 0;
  }
  return 1;
}

static inline void limit_moved(struct LimitSide* side, struct LimitOperation* operation, size_t n) {
  operation->moved += n;
  if (operation->moved < operation->bytes) return;
  operation->is_done = 1;
  side->first++;
}

// The next piece of the oldest send, if there is room for it. Returns whether it moved.
static inline int limit_send_some(struct LimitSide* side) {
  if (side->first == side->end) return 0;
  struct LimitOperation* send = &side->operations[side->first % limit_operations];
  struct LimitEntry* entry = &side->pipe->entries[side->entry % limit_entries];
  if (atomic_load_explicit(&entry->word, memory_order_acquire)) return 0;
  size_t n = send->bytes - send->moved;
  if (n <= limit_inline) {
    memcpy(entry->bytes, send->memory + send->moved, n);
  } else {
    if (n > limit_piece) n = limit_piece;
    size_t place = limit_place(side->at, n);
    if (!limit_has_room(side, place + n)) return 0;
    memcpy(limit_memory(side->pipe, place), send->memory + send->moved, n);
    side->at = place + n;
    if (side->piece - side->oldest == limit_entries) limit_free_oldest(side);
    side->pieces[side->piece % limit_entries].entry = side->entry;
    side->pieces[side->piece++ % limit_entries].end = side->at;
  }
  atomic_store_explicit(&entry->word, (unsigned)n + 1, memory_order_release);
  side->entry++;
  limit_moved(side, send, n);
  return 1;
}

typedef double LimitPair __attribute__((vector_size(16), aligned(1), may_alias));

// The sum of what arrives and what is here, without a copy in between.
static inline void limit_add(char* to, const char* own, const char* from, size_t n) {
  size_t at = 0;
  for (; at + sizeof(LimitPair) <= n; at += sizeof(LimitPair))
    *(LimitPair*)(to + at) = *(const LimitPair*)(own + at) + *(const LimitPair*)(from + at);
  if (at == n) return;
  double last, more;
  memcpy(&last, own + at, sizeof last);
  memcpy(&more, from + at, sizeof more);
  last += more;
  memcpy(to + at, &last, sizeof last);
}

// The next piece of the oldest receive, if it is there. Returns whether it moved.
static inline int limit_receive_some(struct LimitSide* side) {
  if (side->first == side->end) return 0;
  struct LimitOperation* receive = &side->operations[side->first % limit_operations];
  struct LimitEntry* entry = &side->pipe->entries[side->entry % limit_entries];
  unsigned word = atomic_load_explicit(&entry->word, memory_order_acquire);
  if (!word) return 0;
  size_t n = word - 1;
  if (n > receive->bytes - receive->moved) limit_fail("a message is longer than its receive");
  const char* from = entry->bytes;
  if (n > limit_inline) {
    size_t place = limit_place(side->at, n);
    from = limit_memory(side->pipe, place);
    side->at = place + n;
  }
  char* to = receive->memory + receive->moved;
  if (receive->addends)
    limit_add(to, (const char*)receive->addends + receive->moved, from, n);
  else
    memcpy(to, from, n);
  atomic_store_explicit(&entry->word, 0, memory_order_release);
  side->entry++;
  limit_moved(side, receive, n);
  return 1;
}

static inline int limit_move_some(void) {
  int moved = 0;
  for (int p = 0; p < limit_ranks - 1; p++) {
    moved |= limit_send_some(&limit_peers[p].out);
    moved |= limit_receive_some(&limit_peers[p].in);
  }
  return moved;
}

static inline void limit_reap(int options) {
  int status;
  while (limit_children > 0 && waitpid(-1, &status, options) > 0) {
    if (status != 0) limit_fail("another process failed");
    limit_children--;
  }
}

static inline void limit_yield(void) {
  static unsigned yields;
  if (limit_rank == 0) {
    // Since they were seen to be gone, what they left has been looked for.
    if (limit_children == 0) limit_fail("the other processes are gone");
    if (yields++ % limit_yields_until_a_look == 0) limit_reap(WNOHANG);
  }
  sched_yield();
}

static inline void limit_wait(const struct LimitOperation* operation) {
  for (unsigned looks = 0; !operation->is_done;) {
    looks = limit_move_some() ? 0 : looks + 1;
    if (looks < limit_looks) continue;
    limit_yield();
    looks = 0;
  }
}

// ---- the calls -----------------------------------------------------------------------------
static inline int MPI_Init(int* argc, char*** argv) {
  for (int i = 1; i + 1 < *argc; i++)
    if (strcmp((*argv)[i], "--limit-ranks") == 0) limit_ranks = atoi((*argv)[i + 1]);
  if (limit_ranks < 2 || limit_ranks > limit_most_ranks) limit_fail("--limit-ranks is 2 to 16");
  if (limit_ranks > sysconf(_SC_NPROCESSORS_ONLN)) {
    limit_looks = limit_crowded_patience;
    limit_step = limit_crowded_step;
  }
  const size_t bytes = (size_t)(limit_ranks * limit_ranks) * sizeof(struct LimitPipe);
  struct LimitPipe* pipes =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pipes == MAP_FAILED) limit_fail("no memory");
  memset(pipes, 0, bytes);
  pid_t parent = getpid();
  for (int rank = 1; rank < limit_ranks && limit_rank == 0; rank++) {
    pid_t child = fork();
    if (child < 0) limit_fail("cannot fork");
    limit_children++;
    if (child == 0) limit_rank = rank;
  }
  // None is to spin for another one for ever.
  if (limit_rank > 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);
  }
  for (int rank = 0; rank < limit_ranks; rank++) {
    if (rank == limit_rank) continue;
    limit_peer(rank)->out.pipe = &pipes[limit_rank * limit_ranks + rank];
    limit_peer(rank)->in.pipe = &pipes[rank * limit_ranks + limit_rank];
  }
  return 0;
}

static inline int MPI_Finalize(void) {
  fflush(stdout);
  if (limit_rank > 0) _exit(0);
  limit_reap(0);
  return 0;
}

static inline int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  return (void)comm, *rank = limit_rank, 0;
}

static inline int MPI_Comm_size(MPI_Comm comm, int* size) {
  return (void)comm, *size = limit_ranks, 0;
}

static inline int MPI_Isend(const void* memory, int count, MPI_Datatype type, int to, int tag,
                            MPI_Comm comm, MPI_Request* request) {
  (void)tag, (void)comm;
  struct LimitSide* side = &limit_peer(to)->out;
  *request = limit_begin(side, memory, (size_t)count * (size_t)type);
  limit_send_some(side);
  return 0;
}

static inline int MPI_Irecv(void* memory, int count, MPI_Datatype type, int from, int tag,
                            MPI_Comm comm, MPI_Request* request) {
  (void)tag, (void)comm;
  *request = limit_begin(&limit_peer(from)->in, memory, (size_t)count * (size_t)type);
  return 0;
}

static inline int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  (void)status;
  if (*request) limit_wait(*request);
  *request = MPI_REQUEST_NULL;
  return 0;
}

static inline int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  for (int i = 0; i < count; i++) MPI_Wait(&requests[i], statuses);
  return 0;
}

static inline int MPI_Send(const void* memory, int count, MPI_Datatype type, int to, int tag,
                           MPI_Comm comm) {
  MPI_Request request;
  MPI_Isend(memory, count, type, to, tag, comm, &request);
  return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static inline int MPI_Recv(void* memory, int count, MPI_Datatype type, int from, int tag,
                           MPI_Comm comm, MPI_Status* status) {
  MPI_Request request;
  MPI_Irecv(memory, count, type, from, tag, comm, &request);
  return MPI_Wait(&request, status);
}

#include "collectives.h"
