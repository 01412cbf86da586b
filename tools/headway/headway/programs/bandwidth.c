// Bandwidth and message rate between two ranks.
//   --mode window   64 non-blocking sends against 64 receives, then a short answer
//          stream   blocking sends one after the other against blocking receives
//          bidir    both ranks receive and send a window at once (bytes of both directions count)
//          bidir-sends  the same with the sends first, as in the overlap and progress paper
//   --sizes LIST  --buffers hot,many,dirty,cold  --batches N  --batch-us T  --window 64
//   --most-bytes N  a window holds no more than that (but two messages); for slow wires
// hot: one buffer for all messages, never written, as widely used tests do. many: each message of
// the window has its own buffer, never written. dirty: the same, but the sender writes a byte of
// each line of it just before the send, the receiver reads each line after the window's wait; both
// are inside the time. There the window holds at most 4 MB (but two messages), or the buffers would
// fall out of the cache. cold: as many, and the buffers go through 256 MB, so that no cache holds
// them.
#include "common.h"

enum { max_window = 64 };
static const size_t cold_bytes = (size_t)256 << 20;

enum Buffers { hot, many, dirty, cold };
static const char* const buffers_names[] = {"hot", "many", "dirty", "cold"};

struct Setup {
  int rank, batches, window;
  size_t most_bytes;
  double batch_us;
  const char* mode;
  char *out, *in;
  size_t cold_at;  // where the next window begins, if its buffers are cold
};

// An odd number of lines between slots keeps them from sharing sets of the cache.
static size_t slots(size_t bytes, int count) { return (size_t)count * (bytes + cache_line); }

static size_t slot(const struct Setup* s, size_t bytes, enum Buffers kind, int i) {
  return kind == hot ? 0 : (kind == cold ? s->cold_at : 0) + slots(bytes, i);
}

static void next_cold(struct Setup* s, size_t bytes, int window) {
  s->cold_at += slots(bytes, window);
  if (s->cold_at + slots(bytes, window) > cold_bytes) s->cold_at = 0;
}

static int window_for(const struct Setup* s, size_t bytes, enum Buffers kind) {
  size_t most = kind == dirty ? 4u << 20 : s->most_bytes;
  if (kind == cold && most > cold_bytes / 4) most = cold_bytes / 4;
  size_t fit = most / (bytes ? bytes : 1);
  if (fit < 2) fit = 2;
  return fit < (size_t)s->window ? (int)fit : s->window;
}

static void post_sends(const struct Setup* s, size_t bytes, enum Buffers kind, int window,
                       unsigned round, MPI_Request* r) {
  for (int i = 0; i < window; i++) {
    char* p = s->out + slot(s, bytes, kind, i);
    if (kind == dirty) write_lines(p, bytes, round);
    MPI_Isend(p, (int)bytes, MPI_BYTE, 1 - s->rank, 2, MPI_COMM_WORLD, &r[i]);
  }
}

static void post_receives(const struct Setup* s, size_t bytes, enum Buffers kind, int window,
                          MPI_Request* r) {
  for (int i = 0; i < window; i++)
    MPI_Irecv(s->in + slot(s, bytes, kind, i), (int)bytes, MPI_BYTE, 1 - s->rank, 2, MPI_COMM_WORLD,
              &r[i]);
}

static void read_window(const struct Setup* s, size_t bytes, int window) {
  for (int i = 0; i < window; i++) read_lines(s->in + slot(s, bytes, dirty, i), bytes);
}

static void exchange_end(const struct Setup* s) {
  char c = 0;
  if (s->rank == 0)
    MPI_Recv(&c, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Send(&c, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
}

static void one_window(const struct Setup* s, size_t bytes, enum Buffers kind, int window,
                       unsigned round) {
  MPI_Request sends[max_window], receives[max_window];
  if (s->rank == 0) {
    post_sends(s, bytes, kind, window, round, sends);
    MPI_Waitall(window, sends, MPI_STATUSES_IGNORE);
  } else {
    post_receives(s, bytes, kind, window, receives);
    MPI_Waitall(window, receives, MPI_STATUSES_IGNORE);
    if (kind == dirty) read_window(s, bytes, window);
  }
  exchange_end(s);
}

static void both_ways(const struct Setup* s, size_t bytes, enum Buffers kind, int window,
                      unsigned round) {
  MPI_Request r[2 * max_window];
  int sends_first = strcmp(s->mode, "bidir-sends") == 0;
  if (sends_first) post_sends(s, bytes, kind, window, round, r + window);
  post_receives(s, bytes, kind, window, r);
  if (!sends_first) post_sends(s, bytes, kind, window, round, r + window);
  MPI_Waitall(2 * window, r, MPI_STATUSES_IGNORE);
  if (kind == dirty) read_window(s, bytes, window);
  exchange_end(s);
}

static void one_stream(const struct Setup* s, size_t bytes, enum Buffers kind, int window,
                       unsigned round) {
  for (int i = 0; i < window; i++) {
    if (s->rank == 0) {
      char* p = s->out + slot(s, bytes, kind, i);
      if (kind == dirty) write_lines(p, bytes, round);
      MPI_Send(p, (int)bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    } else {
      char* p = s->in + slot(s, bytes, kind, i);
      MPI_Recv(p, (int)bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (kind == dirty) read_lines(p, bytes);
    }
  }
  exchange_end(s);
}

static void run_windows(struct Setup* s, size_t bytes, enum Buffers kind, int windows) {
  int window = window_for(s, bytes, kind);
  for (int i = 0; i < windows; i++) {
    if (strncmp(s->mode, "bidir", 5) == 0)
      both_ways(s, bytes, kind, window, (unsigned)i);
    else if (strcmp(s->mode, "stream") == 0)
      one_stream(s, bytes, kind, window, (unsigned)i);
    else
      one_window(s, bytes, kind, window, (unsigned)i);
    if (kind == cold) next_cold(s, bytes, window);
  }
}

static void measure(struct Setup* s, size_t bytes, enum Buffers kind, const char* name) {
  int per_message = strcmp(name, "rate") == 0;
  double directions = strncmp(s->mode, "bidir", 5) == 0 ? 2 : 1;
  double messages = window_for(s, bytes, kind) * directions;
  s->cold_at = 0;
  run_windows(s, bytes, kind, 1);
  double start = now_us();
  run_windows(s, bytes, kind, 1);
  double each = now_us() - start;
  int windows = (int)(s->batch_us / (each > 1 ? each : 1));
  if (windows < 1) windows = 1;
  share(&windows, sizeof windows, 0, s->rank);
  run_windows(s, bytes, kind, windows / 4 + 1);
  double before = probe_line(s->rank);
  for (int b = 0; b < s->batches; b++) {
    start = now_us();
    run_windows(s, bytes, kind, windows);
    double us = (now_us() - start) / windows;
    double after = probe_line(s->rank);
    // MB/s (10^6 bytes), or million messages a second.
    double sample = per_message ? messages / us : messages * (double)bytes / us;
    if (s->rank == 0)
      print_samples(name, bytes, buffers_names[kind], per_message ? "M/s" : "MB/s", before, after,
                    &sample, 1);
    before = after;
  }
}

int main(int argc, char** argv) {
  struct Setup s;
  size_t sizes[max_sizes], largest = 0;
  int ranks, n = arg_sizes(argc, argv, "65536", sizes);
  pin_before_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("bandwidth wants two ranks");
  pin_to_core(s.rank);
  probe_open(ranks, arg_text(argc, argv, "--page", NULL));
  s.mode = arg_text(argc, argv, "--mode", "window");
  s.batches = (int)arg_number(argc, argv, "--batches", 8);
  s.batch_us = arg_number(argc, argv, "--batch-us", 4000);
  s.window = (int)arg_number(argc, argv, "--window", max_window);
  if (s.window < 1 || s.window > max_window) fail("--window must be 1 to 64");
  s.most_bytes = (size_t)arg_number(argc, argv, "--most-bytes", 256 << 20);
  const char* buffers = arg_text(argc, argv, "--buffers", "hot,dirty");
  const char* name = arg_text(argc, argv, "--name", s.mode);
  for (int i = 0; i < n; i++) {
    for (enum Buffers kind = hot; kind <= cold; kind++) {
      if (!strstr(buffers, buffers_names[kind])) continue;
      size_t needed = kind == hot    ? sizes[i]
                      : kind == cold ? cold_bytes
                                     : slots(sizes[i], window_for(&s, sizes[i], kind));
      if (needed > largest) largest = needed;
    }
  }
  s.out = new_buffer(largest);
  s.in = new_buffer(largest);
  for (int i = 0; i < n; i++) {
    for (enum Buffers kind = hot; kind <= cold; kind++)
      if (strstr(buffers, buffers_names[kind])) measure(&s, sizes[i], kind, name);
  }
  MPI_Finalize();
  return 0;
}
