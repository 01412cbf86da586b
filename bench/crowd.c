// Exchanges where others want the cores: with more ranks than cores, or beside strangers that
// compute all the time. Ranks go in pairs; each exchange is a receive, a send, and a wait of the
// kind that is asked for. Two answers a size: the median exchange (exchange_*), and the mean of a
// batch of them with all turns of the others in it (exchange_mean_*), until all pairs are through.
//   --way wait|testall|iprobe|status|ibarrier  --strangers N (stranger i stays on core i)
//   --sizes LIST  --exchanges N (of one batch)  --batches N  --pin 0|1
//   --threads N: each rank has so many threads, and each exchanges with its like of the partner by
//   a tag of its own (MPI_THREAD_MULTIPLE); the mean alone is told
// A batch of two ranks lasts for least_ms, if need be with more exchanges: in a shorter one either
// nobody else had a turn, or one turn is most of it, and its mean tells which.
// As many ranks as cores stay on a core each, too (--pin 1): else the system moves them out of the
// way, as it does for programs that nobody binds (--pin 0).
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

enum { most_strangers = 64, most_exchanges = 200000, most_threads = 64, least_ms = 40 };
static const size_t most_bytes = 800000000;  // of one batch; but twenty exchanges are made

struct Setup {
  int rank, ranks, partner, exchanges, strangers, threads;
  int tag;  // of whoever exchanges
  const char* way;
  char *out, *in;
};

static pid_t strangers[most_strangers];

// They must not outlive this program, whatever ends it.
static void start_strangers(int n) {
  if (n > most_strangers) fail("--strangers must be at most 64");
  for (int i = 0; i < n; i++) {
    strangers[i] = fork();
    if (strangers[i] < 0) fail("cannot fork a stranger");
    if (strangers[i] > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(300);
    pin_to_core(i);
    for (;;) compute(1000000);
  }
}

static void end_strangers(int n) {
  for (int i = 0; i < n; i++) kill(strangers[i], SIGKILL);
}

static void exchange(const struct Setup* s, size_t bytes) {
  MPI_Request r[2];
  int done = 0;
  if (strcmp(s->way, "ibarrier") == 0) {
    MPI_Ibarrier(MPI_COMM_WORLD, &r[0]);
    while (!done) MPI_Test(&r[0], &done, MPI_STATUS_IGNORE);
    return;
  }
  int probes = strcmp(s->way, "iprobe") == 0;
  if (!probes) MPI_Irecv(s->in, (int)bytes, MPI_BYTE, s->partner, s->tag, MPI_COMM_WORLD, &r[0]);
  MPI_Isend(s->out, (int)bytes, MPI_BYTE, s->partner, s->tag, MPI_COMM_WORLD, &r[1]);
  if (probes) {
    while (!done) MPI_Iprobe(s->partner, s->tag, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
    MPI_Recv(s->in, (int)bytes, MPI_BYTE, s->partner, s->tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    return;
  }
  if (strcmp(s->way, "testall") == 0) {
    while (!done) MPI_Testall(2, r, &done, MPI_STATUSES_IGNORE);
    return;
  }
  if (strcmp(s->way, "status") == 0)
    while (!done) MPI_Request_get_status(r[0], &done, MPI_STATUS_IGNORE);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

static void print_answer(const struct Setup* s, const char* what, size_t bytes, double sample) {
  char name[64];
  snprintf(name, sizeof name, "%s_%s", what, s->way);
  print_samples(name, bytes, "hot", "us", 0, 0, &sample, 1);
}

static int exchanges_of(const struct Setup* s, size_t bytes) {
  int n = s->exchanges;
  while (n > 20 && (size_t)n * bytes > most_bytes) n /= 2;
  return n;
}

struct Worker {
  struct Setup setup;
  size_t bytes;
  int exchanges;
  pthread_t thread;
};

static void* work(void* argument) {
  const struct Worker* w = argument;
  for (int i = 0; i < w->exchanges; i++) exchange(&w->setup, w->bytes);
  return NULL;
}

static void batch_of_threads(const struct Setup* s, size_t bytes) {
  static struct Worker workers[most_threads];
  int n = exchanges_of(s, bytes * (size_t)s->threads);
  for (int t = 0; t < s->threads; t++) {
    struct Worker* w = &workers[t];
    w->setup = *s;
    w->setup.tag = s->tag + t;
    w->setup.out = new_buffer(bytes);
    w->setup.in = new_buffer(bytes);
    w->bytes = bytes;
    w->exchanges = n;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now_us();
  for (int t = 0; t < s->threads; t++)
    if (pthread_create(&workers[t].thread, NULL, work, &workers[t])) fail("cannot start a thread");
  for (int t = 0; t < s->threads; t++) pthread_join(workers[t].thread, NULL);
  double mean = (now_us() - start) / n;
  for (int t = 0; t < s->threads; t++) {
    free(workers[t].setup.out);
    free(workers[t].setup.in);
  }
  if (s->rank == 0) print_answer(s, "exchange_mean", bytes, mean);
}

// Exchanges in a batch of that size, by a trial; rank 0's is what both do.
static int enough_of(const struct Setup* s, size_t bytes) {
  int n = exchanges_of(s, bytes);
  if (s->ranks > 2) return n;
  double start = now_us();
  for (int i = 0; i < n; i++) exchange(s, bytes);
  double wanted = least_ms * 1000.0 * n / (now_us() - start);
  if (wanted > n) n = wanted < most_exchanges ? (int)wanted : most_exchanges;
  MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return n;
}

static void batch(const struct Setup* s, size_t bytes, int n) {
  static double times[most_exchanges];
  if (s->ranks > 2) MPI_Barrier(MPI_COMM_WORLD);
  double start = now_us();
  for (int i = 0; i < n; i++) {
    double began = now_us();
    exchange(s, bytes);
    times[i] = now_us() - began;
  }
  // Where ranks share cores, one pair may have been through before another came to its core.
  if (s->ranks > 2) MPI_Barrier(MPI_COMM_WORLD);
  double mean = (now_us() - start) / n;
  if (s->rank != 0) return;
  print_answer(s, "exchange", bytes, median(times, n));
  print_answer(s, "exchange_mean", bytes, mean);
}

// The answer must be right, or its time means nothing.
static void check(const struct Setup* s, size_t bytes) {
  memset(s->out, 1 + s->rank % 100, bytes);
  memset(s->in, 0, bytes);
  exchange(s, bytes);
  for (size_t i = 0; strcmp(s->way, "ibarrier") && i < bytes; i++)
    if (s->in[i] != 1 + s->partner % 100) fail("the exchange gave wrong bytes");
}

int main(int argc, char** argv) {
  struct Setup s;
  size_t sizes[max_sizes];
  int n = arg_sizes(argc, argv, "8", sizes);
  if (arg_number(argc, argv, "--pin", 1) > 0) pin_before_init();
  s.threads = (int)arg_number(argc, argv, "--threads", 1);
  if (s.threads < 1 || s.threads > most_threads) fail("--threads must be 1 to 64");
  int level = s.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, given;
  MPI_Init_thread(&argc, &argv, level, &given);
  if (given < level) fail("this MPI has no MPI_THREAD_MULTIPLE");
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
  if (s.ranks % 2) fail("crowd wants pairs of ranks");
  s.partner = s.rank ^ 1;
  s.tag = 1;
  s.way = arg_text(argc, argv, "--way", "wait");
  if (s.threads > 1 && strcmp(s.way, "ibarrier") == 0) fail("threads have no --way ibarrier");
  s.exchanges = (int)arg_number(argc, argv, "--exchanges", 2000);
  if (s.exchanges < 1 || s.exchanges > most_exchanges) fail("--exchanges must be 1 to 200000");
  s.strangers = s.rank == 0 ? (int)arg_number(argc, argv, "--strangers", 0) : 0;
  int batches = (int)arg_number(argc, argv, "--batches", 3);
  start_strangers(s.strangers);
  usleep(20000);  // until they are at work
  for (int i = 0; i < n; i++) {
    s.out = new_buffer(sizes[i]);
    s.in = new_buffer(sizes[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    check(&s, sizes[i]);
    int enough = s.threads > 1 ? 0 : enough_of(&s, sizes[i]);
    for (int b = 0; b < batches; b++)
      s.threads > 1 ? batch_of_threads(&s, sizes[i]) : batch(&s, sizes[i], enough);
    MPI_Barrier(MPI_COMM_WORLD);
    free(s.out);
    free(s.in);
  }
  end_strangers(s.strangers);
  MPI_Finalize();
  return 0;
}
