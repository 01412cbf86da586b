// Independent progress, section 7 of the overlap and progress paper.
// After a barrier, one side puts a delay between its non-blocking call and its wait; the latency is
// recorded at the receiver for both sides' tests; l0 is that latency without a delay. What is left
// after the delay, divided by l0, is the post-delay work;
//   progress = 1 - post-delay work                          (delays longer than l0)
// send: rank 0 does Isend, delays, waits; rank 1 blocks in Recv. Left: latency - delay.
// recv: rank 1 does Irecv, delays, waits; rank 0 blocks in Send. Left: the time of the wait. The
//       delay loop also looks at the buffer's last byte, so that data that arrived without being
//       completed is told apart from data that never moved.
// A delay shorter than l0 says nothing of independent progress, but how much of it was hidden: it
// is reported as "delayed", the latency with it.
//   --sizes LIST  --delays 1.5,2,100us (times l0, or microseconds)  --step-us T  --searches N
//   --sides send,recv
#include "common.h"

enum { tag_data = 5, fewest = 3, most = 400, max_delays = 8 };

// A delay: times l0, or fixed.
struct Delay {
  double factor, us;
};

struct Setup {
  int rank, send_side;
  size_t bytes;
  char* buffer;
  double step_us;
  unsigned round;
};

// What a step saw at the receiver.
struct Step {
  double latency, left, arrived_share, arrived_us;
};

// Looks at the last byte all the time; returns when it had the awaited value, or -1.
static double delay_and_look(double from, double us, const char* last, char awaited) {
  double seen = -1, t;
  while ((t = now_us()) - from < us)
    if (seen < 0 && *(const volatile char*)last == awaited) seen = t - from;
  return seen;
}

static void send_once(const struct Setup* s, double delay) {
  MPI_Request r;
  if (s->send_side) {
    MPI_Isend(s->buffer, (int)s->bytes, MPI_BYTE, 1, tag_data, MPI_COMM_WORLD, &r);
    double from = now_us();
    while (now_us() - from < delay) continue;
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(s->buffer, (int)s->bytes, MPI_BYTE, 1, tag_data, MPI_COMM_WORLD);
  }
}

static void receive_once(const struct Setup* s, double delay, char awaited, struct Step* out) {
  MPI_Request r;
  double start = now_us();
  if (s->send_side) {
    MPI_Recv(s->buffer, (int)s->bytes, MPI_BYTE, 0, tag_data, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    out->latency = now_us() - start;
    out->left = out->latency > delay ? out->latency - delay : 0;
    out->arrived_us = -1;
  } else {
    MPI_Irecv(s->buffer, (int)s->bytes, MPI_BYTE, 0, tag_data, MPI_COMM_WORLD, &r);
    out->arrived_us = delay_and_look(start, delay, s->buffer + s->bytes - 1, awaited);
    double from = now_us();
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    double end = now_us();
    out->latency = end - start;
    out->left = delay > 0 ? end - from : out->latency;
  }
  if (s->buffer[s->bytes - 1] != awaited) fail("progress: the wrong message arrived");
}

static struct Step run_step(struct Setup* s, double delay, int reps) {
  static double latency[most + 1], left[most + 1], arrived[most + 1];
  struct Step one, all = {0, 0, 0, -1};
  double words[2] = {delay, reps};
  int seen = 0;
  share(words, sizeof words, 1, s->rank);
  delay = words[0];
  reps = (int)words[1];
  for (int i = 0; i < reps + 1; i++) {
    s->round++;
    char value = (char)(s->round % 100 + 1);
    if (s->rank == 0) s->buffer[s->bytes - 1] = value;
    MPI_Barrier(MPI_COMM_WORLD);
    if (s->rank == 0) {
      send_once(s, delay);
      continue;
    }
    receive_once(s, delay, value, &one);
    if (i == 0) continue;  // warm-up of the step
    latency[i - 1] = one.latency;
    left[i - 1] = one.left;
    if (one.arrived_us >= 0) arrived[seen++] = one.arrived_us;
  }
  if (s->rank == 1) {
    all.latency = median(latency, reps);
    all.left = median(left, reps);
    all.arrived_share = (double)seen / reps;
    if (seen) all.arrived_us = median(arrived, seen);
  }
  return all;
}

static double delay_us(const struct Delay* d, double l0) {
  return d->us > 0 ? d->us : d->factor * l0;
}

static void report(const struct Setup* s, const double* before_after, const double* l0,
                   const struct Delay* delay, const struct Step* step) {
  double us = delay_us(delay, l0[0]);
  int judged = us > l0[0];
  printf(
      "@@{\"measure\":\"%s_%s\",\"size\":%zu,\"buffers\":\"hot\",\"unit\":\"%s\","
      "\"probe\":[%.1f,%.1f],\"samples\":[%.4f],\"extra\":{\"delay\":%.2f,\"delay_us\":%.3f,"
      "\"fixed\":%d,\"l0_us\":%.3f,\"l0_after_us\":%.3f,\"latency_us\":%.3f,\"left_us\":%.3f,"
      "\"arrived_share\":%.3f,\"arrived_us\":%.3f}}\n",
      judged ? "progress" : "delayed", s->send_side ? "send" : "recv", s->bytes,
      judged ? "share" : "us", before_after[0], before_after[1],
      judged ? 1 - step->left / l0[0] : step->latency, us / l0[0], us, delay->us > 0, l0[0], l0[1],
      step->latency, step->left, step->arrived_share, step->arrived_us);
  fflush(stdout);
}

// One size, one side: l0, then each delay. Results are the receiver's (rank 1), the probe's rank
// 0's, so they travel to rank 0.
static void measure(struct Setup* s, const struct Delay* delays, int n) {
  struct Step steps[max_delays];
  double probes[2], l0[2];
  probes[0] = probe_line(s->rank);
  l0[0] = run_step(s, 0, fewest).latency;
  int reps = (int)(s->step_us / (l0[0] > 0.05 ? l0[0] : 0.05));
  reps = reps < fewest ? fewest : reps > most ? most : reps;
  l0[0] = run_step(s, 0, reps).latency;
  for (int i = 0; i < n; i++) steps[i] = run_step(s, delay_us(&delays[i], l0[0]), reps);
  l0[1] = run_step(s, 0, reps).latency;  // another machine than at the start? validity decides
  probes[1] = probe_line(s->rank);
  if (s->rank == 1) {
    MPI_Send(l0, 2, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD);
    MPI_Send(steps, (int)(sizeof *steps * (size_t)n), MPI_BYTE, 0, 6, MPI_COMM_WORLD);
    return;
  }
  MPI_Recv(l0, 2, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Recv(steps, (int)(sizeof *steps * (size_t)n), MPI_BYTE, 1, 6, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  for (int i = 0; i < n; i++) report(s, probes, l0, &delays[i], &steps[i]);
}

static int read_delays(const char* text, struct Delay* delays) {
  int n = 0;
  for (char* end; *text && n < max_delays; n++, text = *end == ',' ? end + 1 : end) {
    double value = strtod(text, &end);
    if (end == text || value < 0)
      fail("--delays wants numbers separated by commas, as 1.5 or 100us");
    delays[n].factor = delays[n].us = 0;
    if (strncmp(end, "us", 2) == 0) {
      delays[n].us = value;
      end += 2;
    } else {
      delays[n].factor = value;
    }
  }
  return n;
}

int main(int argc, char** argv) {
  struct Setup s = {0};
  size_t sizes[max_sizes];
  struct Delay delays[max_delays];
  int ranks, n = arg_sizes(argc, argv, "1048576", sizes);
  pin_before_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("progress wants two ranks");
  pin_to_core(s.rank);
  probe_open(ranks, arg_text(argc, argv, "--page", NULL));
  s.step_us = arg_number(argc, argv, "--step-us", 4000);
  int searches = (int)arg_number(argc, argv, "--searches", 2);
  const char* sides = arg_text(argc, argv, "--sides", "send,recv");
  int count = read_delays(arg_text(argc, argv, "--delays", "1.5,2,4"), delays);
  for (int i = 0; i < n; i++) {
    s.bytes = sizes[i];
    s.buffer = new_buffer(s.bytes);
    for (int k = 0; k < 2 * searches; k++) {
      s.send_side = k % 2;
      if (strstr(sides, s.send_side ? "send" : "recv")) measure(&s, delays, count);
    }
    free(s.buffer);
  }
  MPI_Finalize();
  return 0;
}
