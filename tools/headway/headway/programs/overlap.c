// Overlap of computation and communication, section 6 of the overlap and progress paper; the search
// is search.h's.
// send: rank 0 does Issend, computes, waits; rank 1 blocks in Recv; timed at the sender.
// recv: rank 1 does Irecv, computes, waits; rank 0 blocks in Ssend; timed at the receiver.
// Beside each overlap, figure 3's times: t1 in the call; t3 in the wait behind a computation that
// is longer than the communication (1.5 l0); t2 = l0 - t1 - t3, whose share of l0 bounds the
// overlap. A send that is over long before its receiver has the data was copied ahead: there is
// nothing to hide, so it has no sample. l0 and l are medians over repetitions.
//   --sizes LIST  --searches N  --step-us T (time spent on one step, bounds the repetitions)
//   --sides send,recv
#include "common.h"
#include "search.h"

enum { tag_data = 5, tag_step = 7, tag_ends = 8, fewest = 3, most = 400 };

struct Setup {
  int rank, send_side, driver, reps;
  size_t bytes;
  char* buffer;
  double step_us, ns_per_unit;
};

// What one step saw at the driver: medians of the whole, of the computation, of the call, of the
// wait, and of the time from the call until the other side was done.
struct Step {
  double l, computed, call, wait, delivered;
};

static double starts[2 * most + 1], ends[2 * most + 1];

static void once(const struct Setup* s, uint64_t units, double* t) {
  MPI_Request r;
  t[0] = now_us();
  if (s->send_side)
    MPI_Issend(s->buffer, (int)s->bytes, MPI_BYTE, 1, tag_data, MPI_COMM_WORLD, &r);
  else
    MPI_Irecv(s->buffer, (int)s->bytes, MPI_BYTE, 0, tag_data, MPI_COMM_WORLD, &r);
  t[1] = now_us();
  if (units) compute(units);
  t[2] = now_us();
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  t[3] = now_us();
}

// One step of the driver. The first repetition is not counted: it carries the skew of the order.
static struct Step run_step(const struct Setup* s, double c, int reps) {
  static double l[2 * most], computing[2 * most], calls[2 * most], waits[2 * most];
  struct Step step = {0};
  double t[4];
  uint64_t units = (uint64_t)(c * 1e3 / s->ns_per_unit + 0.5);
  MPI_Send(&reps, 1, MPI_INT, 1 - s->rank, tag_step, MPI_COMM_WORLD);
  for (int i = -1; i < reps; i++) {
    once(s, units, t);
    if (i < 0) continue;
    starts[i] = t[0];
    l[i] = t[3] - t[0];
    computing[i] = t[2] - t[1];
    calls[i] = t[1] - t[0];
    waits[i] = t[3] - t[2];
  }
  MPI_Recv(ends, reps, MPI_DOUBLE, 1 - s->rank, tag_ends, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < reps; i++) starts[i] = ends[i] - starts[i];
  step.l = median(l, reps);
  step.computed = median(computing, reps);
  step.call = median(calls, reps);
  step.wait = median(waits, reps);
  step.delivered = median(starts, reps);
  return step;
}

// The other rank answers steps until one of no repetitions ends the search.
static void serve(const struct Setup* s) {
  for (;;) {
    int reps;
    MPI_Recv(&reps, 1, MPI_INT, s->driver, tag_step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (reps == 0) return;
    for (int i = -1; i < reps; i++) {
      if (s->send_side)
        MPI_Recv(s->buffer, (int)s->bytes, MPI_BYTE, 0, tag_data, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      else
        MPI_Ssend(s->buffer, (int)s->bytes, MPI_BYTE, 1, tag_data, MPI_COMM_WORLD);
      if (i >= 0) ends[i] = now_us();
    }
    MPI_Send(ends, reps, MPI_DOUBLE, s->driver, tag_ends, MPI_COMM_WORLD);
  }
}

struct Found {
  struct Overlap o;
  double l0_after, slowdown, t1, t3, delivered;
  int copied;
};

struct Searching {
  const struct Setup* setup;
  double slowdown;  // of the last step that did not exceed, or of the first one
  int steps;
  double l0;
};

static double step_of_search(void* with, double c, int sure) {
  struct Searching* w = with;
  struct Step step = run_step(w->setup, c, sure ? 2 * w->setup->reps : w->setup->reps);
  if (c > 0 && (w->steps++ == 0 || !overlap_exceeds(step.l, w->l0)))
    w->slowdown = step.computed / c - 1;
  return step.l;
}

static struct Found search_once(struct Setup* s) {
  struct Found f = {0};
  double first = run_step(s, 0, fewest).l;  // warm-up; also tells how many repetitions fit
  int reps = (int)(s->step_us / (first > 0.05 ? first : 0.05));
  s->reps = reps < fewest ? fewest : reps > most ? most : reps;
  struct Step plain = run_step(s, 0, s->reps);
  f.t1 = plain.call;
  f.delivered = plain.delivered;
  f.copied = s->send_side && plain.l < 0.5 * plain.delivered && plain.delivered - plain.l > 1;
  struct Searching with = {s, 0, 0, plain.l};
  f.o = find_overlap(step_of_search, &with, plain.l);
  f.slowdown = with.slowdown;
  f.t3 = run_step(s, 1.5 * plain.l, s->reps).wait;
  f.l0_after = run_step(s, 0, s->reps).l;
  return f;
}

// A search at whose ends l0 is not the same saw two machines: it is made again, twice at most.
static struct Found search(struct Setup* s) {
  struct Found f = {0};
  int none = 0;
  for (int i = 0; i < 3; i++) {
    f = search_once(s);
    if (f.l0_after < 1.15 * f.o.l0 && f.l0_after > f.o.l0 / 1.15) break;
  }
  MPI_Send(&none, 1, MPI_INT, 1 - s->rank, tag_step, MPI_COMM_WORLD);
  return f;
}

static void report(const struct Setup* s, const struct Found* f, double before, double after) {
  const struct Overlap* o = &f->o;
  char sample[32] = "";
  if (!f->copied) snprintf(sample, sizeof sample, "%.4f", o->overlap);
  double t2 = o->l0 - f->t1 - f->t3;
  printf(
      "@@{\"measure\":\"overlap_%s\",\"size\":%zu,\"buffers\":\"hot\",\"unit\":\"share\","
      "\"probe\":[%.1f,%.1f],\"samples\":[%s],\"extra\":{\"l0_us\":%.3f,\"l0_after_us\":%.3f,"
      "\"c_us\":%.3f,\"l_us\":%.3f,\"steps\":%d,\"slowdown\":%.4f,"
      "\"stop_c_us\":%.3f,\"stop_l_us\":%.3f,\"t1_us\":%.3f,\"t2_us\":%.3f,\"t3_us\":%.3f,"
      "\"bound\":%.4f,\"delivered_us\":%.3f,\"copied\":%d}}\n",
      s->send_side ? "send" : "recv", s->bytes, before, after, sample, o->l0, f->l0_after, o->c,
      o->l, o->steps, f->slowdown, o->stop_c, o->stop_l, f->t1, t2, f->t3,
      o->l0 > 0 ? (t2 > 0 ? t2 / o->l0 : 0) : 0, f->delivered, f->copied);
  fflush(stdout);
}

// The probe's answer is rank 0's, the search's the driver's.
static void bring_to_zero(const struct Setup* s, struct Found* f) {
  if (s->driver == 0) return;
  if (s->rank == s->driver)
    MPI_Send(f, sizeof *f, MPI_BYTE, 0, 6, MPI_COMM_WORLD);
  else
    MPI_Recv(f, sizeof *f, MPI_BYTE, s->driver, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  struct Setup s;
  size_t sizes[max_sizes];
  int ranks, n = arg_sizes(argc, argv, "1048576", sizes);
  pin_before_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("overlap wants two ranks");
  pin_to_core(s.rank);
  probe_open(ranks, arg_text(argc, argv, "--page", NULL));
  s.step_us = arg_number(argc, argv, "--step-us", 4000);
  const char* sides = arg_text(argc, argv, "--sides", "send,recv");
  int searches = (int)arg_number(argc, argv, "--searches", 2);
  for (int i = 0; i < n; i++) {
    s.bytes = sizes[i];
    s.buffer = new_buffer(s.bytes);
    for (int k = 0; k < 2 * searches; k++) {
      s.send_side = k % 2;
      if (!strstr(sides, s.send_side ? "send" : "recv")) continue;
      s.driver = s.send_side ? 0 : 1;
      s.ns_per_unit = calibrate_compute();
      struct Found f = {0};
      double before = probe_line(s.rank);
      if (s.rank == s.driver)
        f = search(&s);
      else
        serve(&s);
      double after = probe_line(s.rank);
      bring_to_zero(&s, &f);
      if (s.rank == 0) report(&s, &f, before, after);
    }
    free(s.buffer);
  }
  MPI_Finalize();
  return 0;
}
