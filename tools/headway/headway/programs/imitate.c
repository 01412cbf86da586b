// The imitation layer: plays known behaviours of MPIs of the past over any MPI, so that what a
// study finds can be compared with the truth. Linked in front of the MPI (PMPI); one thread a rank.
//   IMITATE=call=isend,bytes=61440,cumulative=1,free=wait,timeout_us=30000
//     call        isend: MPI_Isend itself blocks; wait: the send's wait does
//     bytes       from this size on
//     cumulative  1: the bytes to one destination that its receives have not taken count together
//     free        what lets a blocked sender go, beside the receiver's wait for that message:
//                 wait nothing else; any a wait for any request; test a test of that message's
//                 receive; timeout the time timeout_us (of the rank timeout_of alone, if that is
//                 given; timeout_down=1: of sends to a lower rank alone, so that of two
//                 that wait for each other one goes on); test+timeout both
//     transfer    1: the call that blocks lasts until its message has arrived, too
//     noise       in how many calls of a hundred the core is lost for up to noise_us, as beside
//                 other processes; a rank that loses it in MPI_Recv is inside of MPI so long
//     late_us     each MPI_Recv of rank 1 lasts so much longer, as where the ranks lie far apart
//   IMITATE_PAGE=FILE  a file that all ranks map: who has sent, entered, tested. It stands for what
//   a library would see in its messages, and belongs to the imitation alone.
// All sends are copied and passed on below, so that the MPI underneath shows no behaviour of its
// own at the sender. The k-th Isend to a rank belongs to the k-th Irecv from it: no wildcards.
#include "common.h"

enum { most_ranks = 64, most_open = 4096 };

struct Pair {
  _Atomic uint64_t sent, released;
};

struct Page {
  struct Pair pairs[most_ranks][most_ranks];  // by sender, by receiver
  _Atomic uint64_t any_wait[most_ranks];      // waits of each rank
  _Atomic int inside[most_ranks];             // a wait now
};

enum Free { free_wait, free_any, free_test, free_timeout };

static struct {
  int on, in_wait, cumulative, rank;
  int patience_ends, down, crowded,
      transfer;  // down: towards lower ranks; crowded: more than cores
  enum Free free;
  size_t bytes;
  struct timespec nap;
  double timeout_us;  // negative: never
  double noise, noise_us;
  double late_us;
  uint64_t random;
  struct Page* page;
} it;

struct Open {
  MPI_Request request;
  int is_send, peer;
  int blocks;   // until it is released nothing of it leaves: a persistent request, not started
  int started;  // that one, after its release
  int waiting;  // its user waits for it
  uint64_t number, waits_seen;
  double since;  // patience is counted from the call that blocks
  size_t bytes;
  char* copy;
};

static struct Open open_requests[most_open];
static int open_count;
static struct Open behind[most_open];  // sends whose user has gone on
static int behind_count;
static uint64_t received[most_ranks], let_go[most_ranks];

// Bytes to each rank that its receives have not taken, as far as they were seen.
static struct {
  uint64_t number;
  size_t bytes;
} outstanding[most_ranks][most_open];
static int outstanding_count[most_ranks];

static const char* value_of(const char* text, const char* name) {
  const char* at = text ? strstr(text, name) : NULL;
  return at ? at + strlen(name) : NULL;
}

static void begin(void) {
  const char* text = getenv("IMITATE");
  const char* path = getenv("IMITATE_PAGE");
  if (!text || !path) return;
  const char* call = value_of(text, "call=");
  const char* bytes = value_of(text, "bytes=");
  const char* cumulative = value_of(text, "cumulative=");
  const char* how = value_of(text, "free=");
  const char* timeout = value_of(text, "timeout_us=");
  if (!call || !bytes || !how) fail("IMITATE wants call=, bytes= and free=");
  it.in_wait = strncmp(call, "wait", 4) == 0;
  it.bytes = strtoull(bytes, NULL, 10);
  it.cumulative = cumulative && *cumulative == '1';
  it.free = *how == 'a'                  ? free_any
            : strncmp(how, "te", 2) == 0 ? free_test
            : *how == 'w'                ? free_wait
                                         : free_timeout;
  it.patience_ends = it.free == free_timeout || strncmp(how, "test+", 5) == 0;
  it.timeout_us = timeout ? atof(timeout) : 30000;
  const char* down = value_of(text, "timeout_down=");
  it.down = down && *down == '1';
  const char* transfer = value_of(text, "transfer=");
  it.transfer = transfer && *transfer == '1';
  const char* noise = value_of(text, "noise=");
  const char* noise_us = value_of(text, "noise_us=");
  it.noise = noise ? atof(noise) / 100 : 0;
  it.noise_us = noise_us ? atof(noise_us) : 3000;
  const char* late = value_of(text, "late_us=");
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) fail("cannot open the file named by IMITATE_PAGE");
  void* page = mmap(NULL, sizeof(struct Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page == MAP_FAILED) fail("cannot map the file named by IMITATE_PAGE");
  it.page = page;
  PMPI_Comm_rank(MPI_COMM_WORLD, &it.rank);
  it.late_us = late && it.rank == 1 ? atof(late) : 0;
  it.random = (uint64_t)it.rank + 1;
  const char* only = value_of(text, "timeout_of=");
  if (only && atoi(only) != it.rank) it.timeout_us = -1;
  int ranks;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  it.crowded = ranks > sysconf(_SC_NPROCESSORS_ONLN);
  const char* slower = getenv("CLUSTER_DILATION");
  double us = 100 * (slower ? atof(slower) : 1);
  it.nap.tv_nsec = (long)((us < 1 ? 1 : us > 5000 ? 5000 : us) * 1e3);
  if (ranks > most_ranks) fail("the imitation is for 64 ranks at most");
  it.on = 1;
}

int MPI_Init(int* argc, char*** argv) {
  int code = PMPI_Init(argc, argv);
  begin();
  return code;
}

// ---- noise -----------------------------------------------------------------------------------
static double draw(void) {
  it.random = it.random * 6364136223846793005ull + 1442695040888963407ull;
  return (double)(it.random >> 11) / (double)(1ull << 53);
}

static void spin(double us) {
  double until = now_us() + us;
  while (now_us() < until) continue;
}

static void lose_core(void) {
  if (it.noise > 0 && draw() < it.noise) spin(draw() * it.noise_us);
}

// ---- what lies open --------------------------------------------------------------------------
static struct Open* find_open(MPI_Request request) {
  for (int i = 0; i < open_count; i++)
    if (open_requests[i].request == request) return &open_requests[i];
  return NULL;
}

static struct Open* add_open(MPI_Request request) {
  if (open_count == most_open) fail("imitation: too many open requests");
  struct Open* o = &open_requests[open_count++];
  memset(o, 0, sizeof *o);
  o->request = request;
  return o;
}

static void remove_open(struct Open* o) { *o = open_requests[--open_count]; }

static void start_if_free(struct Open* o);

// The MPI underneath goes on with sends whose user has gone on, and with those that are released.
static void poke(void) {
  int flag;
  for (int i = 0; i < behind_count;) {
    PMPI_Test(&behind[i].request, &flag, MPI_STATUS_IGNORE);
    if (!flag) {
      i++;
      continue;
    }
    if (behind[i].blocks) PMPI_Request_free(&behind[i].request);
    free(behind[i].copy);
    behind[i] = behind[--behind_count];
  }
  for (int i = 0; i < open_count; i++) start_if_free(&open_requests[i]);
  PMPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  PMPI_Iprobe(MPI_ANY_SOURCE, 32766, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void raise_to(_Atomic uint64_t* what, uint64_t number) {
  uint64_t was = atomic_load(what);
  while (was < number && !atomic_compare_exchange_weak(what, &was, number)) continue;
}

static void enter_wait(void) {
  atomic_fetch_add(&it.page->any_wait[it.rank], 1);
  atomic_fetch_add(&it.page->inside[it.rank], 1);
}

static void leave_wait(void) { atomic_fetch_sub(&it.page->inside[it.rank], 1); }

// ---- senders ---------------------------------------------------------------------------------
static int is_free(int to, uint64_t number, uint64_t waits_seen, double since) {
  if (let_go[to] >= number || atomic_load(&it.page->pairs[it.rank][to].released) >= number)
    return 1;
  if (it.free == free_any &&
      (atomic_load(&it.page->inside[to]) > 0 || atomic_load(&it.page->any_wait[to]) != waits_seen))
    return 1;
  return it.patience_ends && (!it.down || to < it.rank) && it.timeout_us >= 0 &&
         now_us() - since >= it.timeout_us;
}

// Looks after all that is under way; where others want the core, not all the time.
static void look_around(void) {
  poke();
  if (it.crowded) nanosleep(&it.nap, NULL);
}

// Until the receiver has it, where the call that blocks lasts so long.
static void await_transfer(MPI_Request* request) {
  int done = !it.transfer;
  while (!done) {
    PMPI_Request_get_status(*request, &done, MPI_STATUS_IGNORE);
    if (!done) look_around();
  }
}

static void block(int to, uint64_t number, uint64_t waits_seen) {
  double since = now_us();
  while (!is_free(to, number, waits_seen, since)) look_around();
  if (let_go[to] < number) let_go[to] = number;
}

// Whether the send of that number is large enough, with what lies before it.
static int is_large(int to, uint64_t number, size_t bytes) {
  uint64_t taken = atomic_load(&it.page->pairs[it.rank][to].released);
  if (let_go[to] > taken) taken = let_go[to];
  size_t sum = bytes;
  int kept = 0;
  for (int i = 0; i < outstanding_count[to]; i++) {
    if (outstanding[to][i].number <= taken) continue;
    sum += outstanding[to][i].bytes;
    outstanding[to][kept++] = outstanding[to][i];
  }
  if (kept == most_open) fail("imitation: too many messages that nobody takes");
  outstanding[to][kept].number = number;
  outstanding[to][kept].bytes = bytes;
  outstanding_count[to] = kept + 1;
  return (it.cumulative ? sum : bytes) >= it.bytes;
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (!it.on || to < 0 || to >= most_ranks)
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
  lose_core();
  int size;
  PMPI_Type_size(type, &size);  // contiguous types only
  size_t bytes = (size_t)size * (size_t)count;
  uint64_t waits_seen = atomic_load(&it.page->any_wait[to]);
  uint64_t number = atomic_fetch_add(&it.page->pairs[it.rank][to].sent, 1) + 1;
  int large = is_large(to, number, bytes);
  if (large && !it.in_wait) block(to, number, waits_seen);
  char* copy = malloc(bytes ? bytes : 1);
  if (!copy) fail("out of memory");
  memcpy(copy, buffer, bytes);
  int blocks = large && it.in_wait;
  int code = blocks && it.transfer  ? PMPI_Ssend_init(copy, count, type, to, tag, comm, request)
             : blocks               ? PMPI_Send_init(copy, count, type, to, tag, comm, request)
             : large && it.transfer ? PMPI_Issend(copy, count, type, to, tag, comm, request)
                                    : PMPI_Isend(copy, count, type, to, tag, comm, request);
  if (large && !blocks) await_transfer(request);
  struct Open* o = add_open(*request);
  o->is_send = 1;
  o->peer = to;
  o->number = number;
  o->blocks = blocks;
  o->since = now_us();
  o->waits_seen = waits_seen;
  o->bytes = bytes;
  o->copy = copy;
  return code;
}

static void start_if_free(struct Open* o) {
  if (!o->is_send || !o->blocks || o->started) return;
  if (!is_free(o->peer, o->number, o->waits_seen, o->waiting ? o->since : now_us())) return;
  PMPI_Start(&o->request);
  o->started = 1;
}

static void put_behind(struct Open* o) {
  if (behind_count == most_open) fail("imitation: too many sends under way");
  behind[behind_count++] = *o;
  remove_open(o);
  poke();
}

// ---- receivers -------------------------------------------------------------------------------
int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  int code = PMPI_Irecv(buffer, count, type, from, tag, comm, request);
  if (!it.on || from < 0 || from >= most_ranks) return code;
  lose_core();
  struct Open* o = add_open(*request);
  o->peer = from;
  o->number = ++received[from];
  return code;
}

static void enter_receive(const struct Open* o, int by_test) {
  struct Pair* pair = &it.page->pairs[o->peer][it.rank];
  if (by_test && (it.free != free_test || atomic_load(&pair->sent) < o->number)) return;
  raise_to(&pair->released, o->number);
}

// ---- completion ------------------------------------------------------------------------------
static int wait_for(MPI_Request* request, MPI_Status* status) {
  struct Open* o = find_open(*request);
  if (!o) return PMPI_Wait(request, status);
  if (o->is_send) {
    if (o->blocks) {
      o->waiting = 1;
      o->since = now_us();
      while (!o->started) look_around();
      await_transfer(&o->request);
      if (let_go[o->peer] < o->number) let_go[o->peer] = o->number;
    }
    put_behind(o);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  }
  enter_receive(o, 0);
  int done = 0;
  poke();
  for (;;) {
    PMPI_Request_get_status(*request, &done, MPI_STATUS_IGNORE);
    if (done) break;
    look_around();
  }
  remove_open(o);
  return PMPI_Wait(request, status);
}

int MPI_Recv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status* status) {
  if (!it.on || (it.noise <= 0 && it.late_us <= 0))
    return PMPI_Recv(buffer, count, type, from, tag, comm, status);
  enter_wait();
  int code = PMPI_Recv(buffer, count, type, from, tag, comm, status);
  lose_core();
  spin(it.late_us);
  leave_wait();
  return code;
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (!it.on || *request == MPI_REQUEST_NULL) return PMPI_Wait(request, status);
  lose_core();
  enter_wait();
  int code = wait_for(request, status);
  leave_wait();
  return code;
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (!it.on) return PMPI_Waitall(count, requests, statuses);
  int open_here = 0, code = MPI_SUCCESS;
  for (int i = 0; i < count; i++) open_here += requests[i] != MPI_REQUEST_NULL;
  if (!open_here) return MPI_SUCCESS;
  lose_core();
  enter_wait();
  for (int i = 0; i < count; i++) {  // all that are waited for are entered at once
    struct Open* o = requests[i] == MPI_REQUEST_NULL ? NULL : find_open(requests[i]);
    if (o && !o->is_send) enter_receive(o, 0);
  }
  for (int i = 0; i < count; i++)
    if (requests[i] != MPI_REQUEST_NULL)
      code = wait_for(&requests[i],
                      statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);
  leave_wait();
  return code;
}

static int is_done(MPI_Request request) {
  int done = 0;
  struct Open* o = request == MPI_REQUEST_NULL ? NULL : find_open(request);
  if (!o) return 1;
  if (o->is_send) return !o->blocks || o->started;
  enter_receive(o, 1);
  PMPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
  return done;
}

int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (!it.on) return PMPI_Testall(count, requests, flag, statuses);
  poke();
  *flag = 1;
  for (int i = 0; i < count; i++)
    if (!is_done(requests[i])) *flag = 0;
  if (!*flag) return MPI_SUCCESS;
  for (int i = 0; i < count; i++)
    if (requests[i] != MPI_REQUEST_NULL)
      wait_for(&requests[i], statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);
  return MPI_SUCCESS;
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (!it.on || *request == MPI_REQUEST_NULL) return PMPI_Test(request, flag, status);
  return MPI_Testall(1, request, flag, status == MPI_STATUS_IGNORE ? MPI_STATUSES_IGNORE : status);
}

int MPI_Finalize(void) {
  while (behind_count) look_around();
  return PMPI_Finalize();
}
