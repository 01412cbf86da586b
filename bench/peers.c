// Windows among more than two ranks, both ways at once: of one rank with each of the others
// (--shape star), or within many pairs (--shape pairs: rank r with rank r ^ 1). A sample is what
// all of them move together, both directions, until the last one is through.
//   --name NAME (of the measure; rate...: messages a second)  --sizes LIST  --buffers hot,many
//   --window N  --batches N  --batch-us T
//   --pin 1: in a star the first rank has the first core, the others share the rest
// hot: a buffer for each partner and direction, never written. many: one for each message. The
// message that follows a window keeps a sender from being a window ahead. Nothing but messages
// between two ranks is used. The cache-line probe is the one around the run.
#include "common.h"

enum { max_window = 64 };

struct Setup {
  int rank, ranks, is_star, window, batches;
  double batch_us;
  int* partners;
  int count;  // of them
  MPI_Request* requests;
  char *out, *in;
};

// Many buffers, or one for each partner; an odd number of lines keeps them from sharing sets of the
// cache.
static size_t slot(const struct Setup* s, size_t bytes, int is_many, int partner, int message) {
  int at = is_many ? partner * s->window + message : partner;
  return (size_t)at * (bytes + cache_line);
}

static void wait_for(const struct Setup* s, int n) {
  MPI_Waitall(n, s->requests, MPI_STATUSES_IGNORE);
}

static void one_window(const struct Setup* s, size_t bytes, int is_many) {
  char answers[1024];
  int n = 0;
  for (int i = 0; i < s->window; i++)
    for (int p = 0; p < s->count; p++)
      MPI_Irecv(s->in + slot(s, bytes, is_many, p, i), (int)bytes, MPI_BYTE, s->partners[p], 2,
                MPI_COMM_WORLD, &s->requests[n++]);
  for (int i = 0; i < s->window; i++)
    for (int p = 0; p < s->count; p++)
      MPI_Isend(s->out + slot(s, bytes, is_many, p, i), (int)bytes, MPI_BYTE, s->partners[p], 2,
                MPI_COMM_WORLD, &s->requests[n++]);
  wait_for(s, n);
  n = 0;
  for (int p = 0; p < s->count; p++) {
    if (s->partners[p] < s->rank)
      MPI_Isend("", 1, MPI_BYTE, s->partners[p], 3, MPI_COMM_WORLD, &s->requests[n++]);
    else
      MPI_Irecv(&answers[p], 1, MPI_BYTE, s->partners[p], 3, MPI_COMM_WORLD, &s->requests[n++]);
  }
  wait_for(s, n);
}

static void windows(const struct Setup* s, size_t bytes, int is_many, int n) {
  for (int i = 0; i < n; i++) one_window(s, bytes, is_many);
}

// Nobody goes on before all are here; then all have rank 0's number.
static void meet(const struct Setup* s, int* number) {
  char here = 0;
  if (s->rank > 0) {
    MPI_Send(&here, 1, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
    MPI_Recv(number, (int)sizeof *number, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  for (int r = 1; r < s->ranks; r++)
    MPI_Recv(&here, 1, MPI_BYTE, r, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int r = 1; r < s->ranks; r++)
    MPI_Send(number, (int)sizeof *number, MPI_BYTE, r, 4, MPI_COMM_WORLD);
}

// Time of so many windows, µs, on rank 0. In a star it has heard from everybody by then; of pairs
// another one may take longer.
static double time_of(const struct Setup* s, size_t bytes, int is_many, int n) {
  meet(s, &n);
  double start = now_us();
  windows(s, bytes, is_many, n);
  if (!s->is_star) meet(s, &n);
  return now_us() - start;
}

static int byte_of(int from, int to, int message) {
  return 1 + (from * 37 + to * 11 + message * 5) % 120;
}

// What arrives must be right, or its time means nothing.
static void check(const struct Setup* s, size_t bytes, int is_many) {
  int messages = is_many ? s->window : 1, nothing = 0;
  for (int p = 0; p < s->count; p++)
    for (int i = 0; i < messages; i++) {
      memset(s->out + slot(s, bytes, is_many, p, i), byte_of(s->rank, s->partners[p], i), bytes);
      memset(s->in + slot(s, bytes, is_many, p, i), 0, bytes);
    }
  meet(s, &nothing);
  one_window(s, bytes, is_many);
  for (int p = 0; p < s->count; p++)
    for (int i = 0; i < messages; i++) {
      const char* got = s->in + slot(s, bytes, is_many, p, i);
      for (size_t at = 0; at < bytes; at++)
        if (got[at] != byte_of(s->partners[p], s->rank, i)) fail("a message has wrong bytes");
    }
}

static void measure(const struct Setup* s, size_t bytes, int is_many, const char* name) {
  int is_rate = strncmp(name, "rate", 4) == 0;
  int exchanges = s->is_star ? s->ranks - 1 : s->ranks / 2;
  double messages = 2.0 * s->window * exchanges;
  check(s, bytes, is_many);
  double each = time_of(s, bytes, is_many, 1);
  int n = (int)(s->batch_us / (each > 1 ? each : 1));
  if (n < 2) n = 2;
  meet(s, &n);
  windows(s, bytes, is_many, n / 4 + 1);
  for (int b = 0; b < s->batches; b++) {
    double us = time_of(s, bytes, is_many, n) / n;
    double sample = is_rate ? messages / us : messages * (double)bytes / us;
    if (s->rank == 0)
      print_samples(name, bytes, is_many ? "many" : "hot", is_rate ? "M/s" : "MB/s", 0, 0, &sample,
                    1);
  }
}

static void find_partners(struct Setup* s) {
  if (s->ranks < 2 || s->ranks > 1024) fail("peers wants 2 to 1024 ranks");
  if (!s->is_star && s->ranks % 2) fail("pairs want an even number of ranks");
  s->partners = malloc((size_t)s->ranks * sizeof *s->partners);
  s->requests = malloc((size_t)s->ranks * 2 * max_window * sizeof *s->requests);
  if (!s->partners || !s->requests) fail("out of memory");
  if (!s->is_star) {
    s->partners[s->count++] = s->rank ^ 1;
  } else if (s->rank > 0) {
    s->partners[s->count++] = 0;
  } else {
    for (int r = 1; r < s->ranks; r++) s->partners[s->count++] = r;
  }
}

static int core_of(int rank) {
  int others = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
  return rank == 0 || others < 1 ? 0 : 1 + (rank - 1) % others;
}

int main(int argc, char** argv) {
  struct Setup s = {0};
  size_t sizes[max_sizes], largest = 0;
  int n = arg_sizes(argc, argv, "65536", sizes), pin = arg_number(argc, argv, "--pin", 0) > 0;
  s.is_star = strcmp(arg_text(argc, argv, "--shape", "star"), "star") == 0;
  if (pin && rank_before_init() >= 0) pin_to_core(core_of(rank_before_init()));
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
  if (pin) pin_to_core(core_of(s.rank));
  find_partners(&s);
  s.batches = (int)arg_number(argc, argv, "--batches", 5);
  s.batch_us = arg_number(argc, argv, "--batch-us", 10000);
  s.window = (int)arg_number(argc, argv, "--window", 16);
  if (s.window < 1 || s.window > max_window) fail("--window must be 1 to 64");
  const char* buffers = arg_text(argc, argv, "--buffers", "hot");
  const char* name = arg_text(argc, argv, "--name", "bidir");
  int any_many = strstr(buffers, "many") != NULL;
  for (int i = 0; i < n; i++) {
    size_t needed = slot(&s, sizes[i], any_many, s.count, 0);
    if (needed > largest) largest = needed;
  }
  s.out = new_buffer(largest);
  s.in = new_buffer(largest);
  for (int i = 0; i < n; i++) {
    if (strstr(buffers, "hot")) measure(&s, sizes[i], 0, name);
    if (any_many) measure(&s, sizes[i], 1, name);
  }
  MPI_Finalize();
  return 0;
}
