// The limit: what two processes of this machine can do at most by two copies, behind the few calls
// that bandwidth.c and latency.c make. Those are compiled with this header as if it were an MPI's,
// so that the limit is measured by the same program, over the same buffers, as every contestant. A
// message is copied into cells that both processes share, and out of them by the other one, in the
// order of the sends: no envelope, no matching, no tags, no waiting but spinning. One pipe for each
// direction; the two processes are one process that forks in MPI_Init. Small messages lie in the
// line that announces them, the others in four cells of 32 KB, which the caches hold. Thread: one
// in each process, which owns its ends of the pipes. Invariant: an entry's word is 0 while the
// sender may write it, else the bytes in it plus 1; a cell is free once the entry that announced it
// is.
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
enum { MPI_COMM_WORLD = 1, MPI_BYTE = 1 };
#define MPI_STATUS_IGNORE ((MPI_Status*)0)
#define MPI_STATUSES_IGNORE ((MPI_Status*)0)
#define MPI_REQUEST_NULL ((MPI_Request)0)

enum {
  limit_entries = 64,
  limit_inline = 60,  // bytes beside an entry's word
  limit_cells = 4,
  limit_cell = 32 << 10,
  limit_operations = 256,  // that are not complete
  limit_spins = 1 << 16    // between two yields, should the other process want this core
};

struct LimitEntry {
  _Alignas(128) atomic_uint word;
  char bytes[limit_inline];
};

struct LimitPipe {
  struct LimitEntry entries[limit_entries];
  // Half a page from where allocators put large buffers: copies between addresses that are close in
  // their last twelve bits are slow.
  _Alignas(4096) char space[limit_cells * limit_cell + 2048];
};

struct LimitOperation {
  char* memory;
  size_t bytes, moved;
  int is_done;
};

// Operations of one direction, oldest first, and this process's end of its pipe.
struct LimitSide {
  struct LimitPipe* pipe;
  unsigned entry;                    // the next one, counted over all laps
  unsigned cell;                     // the same of cells
  unsigned last_entry[limit_cells];  // sender: which entry announced it last
  struct LimitOperation operations[limit_operations];
  unsigned first, end;  // of operations, counted over all laps
};

static struct LimitSide limit_out, limit_in;
static int limit_rank;
static pid_t limit_child;

static inline void limit_fail(const char* what) {
  fprintf(stderr, "limit: %s\n", what);
  _exit(3);
}

static inline struct LimitOperation* limit_begin(struct LimitSide* side, const void* memory,
                                                 int bytes) {
  if (side->end - side->first == limit_operations) limit_fail("too many operations at a time");
  struct LimitOperation* operation = &side->operations[side->end++ % limit_operations];
  operation->memory = (char*)memory;
  operation->bytes = (size_t)bytes;
  operation->moved = 0;
  operation->is_done = 0;
  return operation;
}

static inline char* limit_cell_of(struct LimitPipe* pipe, unsigned cell) {
  return pipe->space + 2048 + (size_t)(cell % limit_cells) * limit_cell;
}

static inline void limit_moved(struct LimitSide* side, struct LimitOperation* operation, size_t n) {
  operation->moved += n;
  if (operation->moved < operation->bytes) return;
  operation->is_done = 1;
  side->first++;
}

// The next piece of the oldest send, if there is room for it.
static inline void limit_send_some(void) {
  struct LimitSide* side = &limit_out;
  if (side->first == side->end) return;
  struct LimitOperation* send = &side->operations[side->first % limit_operations];
  struct LimitEntry* entry = &side->pipe->entries[side->entry % limit_entries];
  if (atomic_load_explicit(&entry->word, memory_order_acquire)) return;
  size_t n = send->bytes - send->moved;
  if (n <= limit_inline) {
    memcpy(entry->bytes, send->memory + send->moved, n);
  } else {
    if (n > limit_cell) n = limit_cell;
    unsigned cell = side->cell % limit_cells, last = side->last_entry[cell];
    // Of one that was announced a lap ago the entry has been free since.
    if (side->cell >= limit_cells && side->entry - last < limit_entries &&
        atomic_load_explicit(&side->pipe->entries[last % limit_entries].word, memory_order_acquire))
      return;
    memcpy(limit_cell_of(side->pipe, cell), send->memory + send->moved, n);
    side->last_entry[cell] = side->entry;
    side->cell++;
  }
  atomic_store_explicit(&entry->word, (unsigned)n + 1, memory_order_release);
  side->entry++;
  limit_moved(side, send, n);
}

static inline void limit_receive_some(void) {
  struct LimitSide* side = &limit_in;
  if (side->first == side->end) return;
  struct LimitOperation* receive = &side->operations[side->first % limit_operations];
  struct LimitEntry* entry = &side->pipe->entries[side->entry % limit_entries];
  unsigned word = atomic_load_explicit(&entry->word, memory_order_acquire);
  if (!word) return;
  size_t n = word - 1;
  if (n > receive->bytes - receive->moved) limit_fail("a message is longer than its receive");
  const char* from = n <= limit_inline ? entry->bytes : limit_cell_of(side->pipe, side->cell++);
  memcpy(receive->memory + receive->moved, from, n);
  atomic_store_explicit(&entry->word, 0, memory_order_release);
  side->entry++;
  limit_moved(side, receive, n);
}

static inline void limit_yield(void) {
  int status;
  if (limit_rank == 0 && waitpid(limit_child, &status, WNOHANG) == limit_child)
    limit_fail("the second process is gone");
  sched_yield();
}

static inline void limit_wait(const struct LimitOperation* operation) {
  for (unsigned spins = 1; !operation->is_done; spins++) {
    limit_send_some();
    limit_receive_some();
    if (spins % limit_spins == 0) limit_yield();
  }
}

// ---- the calls -----------------------------------------------------------------------------
static inline int MPI_Init(int* argc, char*** argv) {
  (void)argc, (void)argv;
  struct LimitPipe* pipes =
      mmap(NULL, 2 * sizeof *pipes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pipes == MAP_FAILED) limit_fail("no memory");
  memset(pipes, 0, 2 * sizeof *pipes);
  pid_t parent = getpid();
  limit_child = fork();
  if (limit_child < 0) limit_fail("cannot fork");
  limit_rank = limit_child == 0;
  // Neither is to spin for the other one for ever.
  if (limit_rank == 1) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);
  }
  limit_out.pipe = &pipes[limit_rank];
  limit_in.pipe = &pipes[1 - limit_rank];
  return 0;
}

static inline int MPI_Finalize(void) {
  fflush(stdout);
  if (limit_rank == 1) _exit(0);
  int status = 0;
  if (waitpid(limit_child, &status, 0) != limit_child || status != 0)
    limit_fail("the second process failed");
  return 0;
}

static inline int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  return (void)comm, *rank = limit_rank, 0;
}
static inline int MPI_Comm_size(MPI_Comm comm, int* size) { return (void)comm, *size = 2, 0; }

static inline int MPI_Isend(const void* memory, int bytes, MPI_Datatype type, int to, int tag,
                            MPI_Comm comm, MPI_Request* request) {
  (void)type, (void)to, (void)tag, (void)comm;
  *request = limit_begin(&limit_out, memory, bytes);
  limit_send_some();
  return 0;
}

static inline int MPI_Irecv(void* memory, int bytes, MPI_Datatype type, int from, int tag,
                            MPI_Comm comm, MPI_Request* request) {
  (void)type, (void)from, (void)tag, (void)comm;
  *request = limit_begin(&limit_in, memory, bytes);
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

static inline int MPI_Send(const void* memory, int bytes, MPI_Datatype type, int to, int tag,
                           MPI_Comm comm) {
  MPI_Request request;
  MPI_Isend(memory, bytes, type, to, tag, comm, &request);
  return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static inline int MPI_Recv(void* memory, int bytes, MPI_Datatype type, int from, int tag,
                           MPI_Comm comm, MPI_Status* status) {
  MPI_Request request;
  MPI_Irecv(memory, bytes, type, from, tag, comm, &request);
  return MPI_Wait(&request, status);
}
