// Time of one collective call, any number of ranks: batches of calls back to back, rank 0's time.
//   --call allreduce|reduce|bcast|allgather|alltoall|gather|scatter|barrier
//   --sizes LIST (bytes: of the vector, or of the block of each rank or pair)
//   --batches N  --batch-us T  --pin 1 (rank r to core r; else the system places the ranks)
//   --alone N (instead of batches)
// Calls that stand alone are behind a barrier each, and take from when the last rank has come until
// the last one has what it gets. All ranks must read one clock: one machine, or hosts that are
// simulated on it.
// Each batch ends with the calls themselves, where every rank needs every other in each of them.
// Those with a root change it from call to call, so that nobody runs ahead for long; with more than
// two ranks a barrier ends them, or a rank that only sends in the last calls would be ahead.
#include "common.h"

struct Setup {
  int rank, ranks, batches, alone;
  double batch_us;
  const char* call;
  char *out, *in;
};

// The calls `from` to `to` - 1; their numbers give the roots.
static void calls_from(const struct Setup* s, size_t bytes, int from, int to) {
  int doubles = (int)(bytes / sizeof(double));
  for (int i = from; i < to; i++) {
    if (strcmp(s->call, "allreduce") == 0)
      MPI_Allreduce(s->out, s->in, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    else if (strcmp(s->call, "reduce") == 0)
      MPI_Reduce(s->out, s->in, doubles, MPI_DOUBLE, MPI_SUM, i % s->ranks, MPI_COMM_WORLD);
    else if (strcmp(s->call, "bcast") == 0)
      MPI_Bcast(s->out, (int)bytes, MPI_BYTE, i % s->ranks, MPI_COMM_WORLD);
    else if (strcmp(s->call, "allgather") == 0)
      MPI_Allgather(s->out, (int)bytes, MPI_BYTE, s->in, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
    else if (strcmp(s->call, "alltoall") == 0)
      MPI_Alltoall(s->out, (int)bytes, MPI_BYTE, s->in, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
    else if (strcmp(s->call, "gather") == 0)
      MPI_Gather(s->out, (int)bytes, MPI_BYTE, s->in, (int)bytes, MPI_BYTE, i % s->ranks,
                 MPI_COMM_WORLD);
    else if (strcmp(s->call, "scatter") == 0)
      MPI_Scatter(s->out, (int)bytes, MPI_BYTE, s->in, (int)bytes, MPI_BYTE, i % s->ranks,
                  MPI_COMM_WORLD);
    else
      MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void calls(const struct Setup* s, size_t bytes, int n) { calls_from(s, bytes, 0, n); }

// The answer must be right, or its time means nothing.
static void check(const struct Setup* s, size_t bytes) {
  int doubles = (int)(bytes / sizeof(double));
  if (strcmp(s->call, "allreduce") == 0) {
    for (int i = 0; i < doubles; i++) ((double*)s->out)[i] = s->rank + i % 5;
    calls(s, bytes, 1);
    for (int i = 0; i < doubles; i++)
      if (((double*)s->in)[i] != s->ranks * (s->ranks - 1) / 2 + s->ranks * (i % 5))
        fail("allreduce gave a wrong sum");
  } else if (strcmp(s->call, "alltoall") == 0) {
    for (int r = 0; r < s->ranks; r++)
      memset(s->out + (size_t)r * bytes, 1 + (s->rank * s->ranks + r) % 100, bytes);
    calls(s, bytes, 1);
    for (int r = 0; r < s->ranks; r++)
      for (size_t i = 0; i < bytes; i++)
        if (s->in[(size_t)r * bytes + i] != 1 + (r * s->ranks + s->rank) % 100)
          fail("alltoall gave a wrong block");
  } else if (strstr(s->call, "gather")) {
    memset(s->out, 1 + s->rank % 100, bytes);
    calls(s, bytes, 1);
    if (s->rank != 0 && strcmp(s->call, "gather") == 0) return;
    for (int r = 0; r < s->ranks; r++)
      for (size_t i = 0; i < bytes; i++)
        if (s->in[(size_t)r * bytes + i] != 1 + r % 100)
          fail("a gathering call gave a wrong block");
  } else if (strcmp(s->call, "scatter") == 0) {
    for (int r = 0; r < s->ranks; r++) memset(s->out + (size_t)r * bytes, 1 + r % 100, bytes);
    memset(s->in, 0, bytes);
    calls(s, bytes, 1);
    for (size_t i = 0; i < bytes; i++)
      if (s->in[i] != 1 + s->rank % 100) fail("scatter gave a wrong block");
  } else if (strcmp(s->call, "bcast") == 0) {
    memset(s->out, 1 + s->rank % 100, bytes);
    calls(s, bytes, 1);
    for (size_t i = 0; i < bytes; i++)
      if (s->out[i] != 1) fail("bcast gave wrong bytes");
  } else if (strcmp(s->call, "reduce") == 0) {
    for (int i = 0; i < doubles; i++) ((double*)s->out)[i] = s->rank + i % 5;
    calls(s, bytes, 1);
    for (int i = 0; s->rank == 0 && i < doubles; i++)
      if (((double*)s->in)[i] != s->ranks * (s->ranks - 1) / 2 + s->ranks * (i % 5))
        fail("reduce gave a wrong sum");
  }
}

static int ends_with_barrier(const struct Setup* s) {
  return s->ranks > 2 && strncmp(s->call, "all", 3) != 0;
}

// What `all` took without a barrier of `barrier` at its end. Where the two are less than a quarter
// apart their difference is noise, and may be nothing or less; a fifth of the whole is then more
// than the calls took (all / 1.25 is the barrier's), so that a batch comes out too short, which
// `grown` makes good, and not too long, which nothing would.
static double without(double barrier, double all) {
  return all > 1.25 * barrier ? all - barrier : all / 5;
}

static int fitting(double us, double each) {
  double n = us / (each > 0.1 ? each : 0.1);
  return n < 2 ? 2 : n > 20000 ? 20000 : (int)n;
}

// How many calls fill a batch. Two may be over on rank 0 before the others have their part in them,
// so, unless those took long, two rounds of roots until all are through tell. A barrier that ends
// the batch is at most a tenth of it, unless a call takes as long.
static int enough_of(const struct Setup* s, size_t bytes) {
  double start = now_us();
  calls(s, bytes, 2);
  int n = fitting(s->batch_us > 10000 ? s->batch_us : 10000, (now_us() - start) / 2);
  if (n > 2 * s->ranks) n = 2 * s->ranks;
  MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
  start = now_us();
  calls(s, bytes, n);
  MPI_Barrier(MPI_COMM_WORLD);
  double middle = now_us(), us = s->batch_us;
  MPI_Barrier(MPI_COMM_WORLD);
  double barrier = now_us() - middle, all = middle - start;
  double each = without(barrier, all) / n;
  if (ends_with_barrier(s) && us < 10 * barrier) us = 10 * barrier;
  n = fitting(us, each);
  MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return n;
}

// With more ranks than cores the first calls may take a hundred times as long as all others, until
// the system has found out who waits. A batch that is over too soon tells so, and the next one is
// longer: else the barrier at its end would be most of it.
static int grown(const struct Setup* s, size_t bytes, int n) {
  for (int tries = 0; tries < 10; tries++) {
    double start = now_us();
    calls(s, bytes, n);
    if (ends_with_barrier(s)) MPI_Barrier(MPI_COMM_WORLD);
    double middle = now_us(), took = middle - start;
    if (ends_with_barrier(s)) {  // a second one tells what of that is the first
      MPI_Barrier(MPI_COMM_WORLD);
      took = without(now_us() - middle, took);
    }
    int more = took < s->batch_us / 2 ? fitting(s->batch_us, took / n) : n;
    if (more > 8 * n) more = 8 * n;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (more <= n) break;
    n = more;
  }
  return n;
}

static void measure_alone(const struct Setup* s, size_t bytes) {
  char name[64];
  snprintf(name, sizeof name, "%s_alone_%d", s->call, s->ranks);
  size_t blocks = strcmp(s->call, "allgather") == 0 || strcmp(s->call, "alltoall") == 0 ||
                          strcmp(s->call, "gather") == 0
                      ? (size_t)s->ranks
                      : 1;
  double* every = calloc(2 * (size_t)s->ranks, sizeof *every);
  if (!every) fail("no memory");
  check(s, bytes);
  for (int i = 0; i < s->alone; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double own[2] = {now_us(), 0}, came = 0, has = 0;
    calls_from(s, bytes, i, i + 1);
    // A call may return before its data is there.
    if (strcmp(s->call, "bcast") == 0)
      read_lines(s->out, bytes);
    else
      read_lines(s->in, bytes * blocks);
    own[1] = now_us();
    MPI_Gather(own, 2, MPI_DOUBLE, every, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int rank = 0; s->rank == 0 && rank < s->ranks; rank++) {
      if (every[2 * rank] > came) came = every[2 * rank];
      if (every[2 * rank + 1] > has) has = every[2 * rank + 1];
    }
    double sample = has - came;
    if (s->rank == 0) print_samples(name, bytes, "hot", "us", 0, 0, &sample, 1);
  }
  free(every);
}

static void measure(const struct Setup* s, size_t bytes) {
  if (s->alone > 0) {
    measure_alone(s, bytes);
    return;
  }
  check(s, bytes);
  calls(s, bytes, 1);
  int n = grown(s, bytes, enough_of(s, bytes));
  double before = probe_line(s->rank);
  for (int b = 0; b < s->batches; b++) {
    calls(s, bytes, 1);
    double start = now_us();
    calls(s, bytes, n);
    if (ends_with_barrier(s)) MPI_Barrier(MPI_COMM_WORLD);
    double sample = (now_us() - start) / n;
    double after = probe_line(s->rank);
    if (s->rank == 0) {
      char name[64];
      snprintf(name, sizeof name, "%s_%d", s->call, s->ranks);
      print_samples(name, bytes, "hot", "us", before, after, &sample, 1);
    }
    before = after;
  }
}

int main(int argc, char** argv) {
  struct Setup s;
  size_t sizes[max_sizes], largest = 8;
  int n = arg_sizes(argc, argv, "8", sizes);
  int pin = arg_number(argc, argv, "--pin", 0) > 0;
  if (pin) pin_before_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
  if (pin) {
    pin_to_core(s.rank);
    probe_open(s.ranks, arg_text(argc, argv, "--page", NULL));
  }
  s.call = arg_text(argc, argv, "--call", "allreduce");
  s.batches = (int)arg_number(argc, argv, "--batches", 5);
  s.batch_us = arg_number(argc, argv, "--batch-us", 10000);
  s.alone = (int)arg_number(argc, argv, "--alone", 0);
  for (int i = 0; i < n; i++)
    if (sizes[i] > largest) largest = sizes[i];
  int one = strcmp(s.call, "bcast") == 0 || strcmp(s.call, "reduce") == 0;
  int blocks = one ? 1 : s.ranks;  // some need fewer
  s.out = new_buffer(largest * (size_t)blocks);
  s.in = new_buffer(largest * (size_t)blocks);
  for (int i = 0; i < n; i++) measure(&s, sizes[i]);
  MPI_Finalize();
  return 0;
}
