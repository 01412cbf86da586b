// Overlap of computation and communication, sections 6 of the overlap and progress paper.
// l0: communication time without computation. c: computation between the call and its wait. l: time
// with it. c grows in steps of a tenth of l0 until l exceeds 1.1 l0; the last c below counts:
//   overlap = (c - (l - l0)) / l0                       (equation 4)
// Where l never exceeds 1.1 l0 the search ends at c = l0 and overlap is 1.
// send: rank 0 does Issend, computes, waits; rank 1 blocks in Recv; timed at the sender.
// recv: rank 1 does Irecv, computes, waits; rank 0 blocks in Ssend; timed at the receiver.
// l0 and l are medians over repetitions. A step that exceeds is measured again with twice the
// repetitions before it counts, since other programs' time slices hit single repetitions.
//   --sizes LIST  --searches N  --step-us T (time spent on one step, bounds the repetitions)
#include "common.h"

enum { tag_data = 5, fewest = 3, most = 400 };

struct Setup {
  int rank, send_side, driver;
  size_t bytes;
  char* buffer;
  double step_us, ns_per_unit;
};

// What one step saw at the driver: median time, median length of the computation inside it.
struct Step {
  double l, computed;
};

static double once_sending(const struct Setup* s, uint64_t units, double* computed) {
  MPI_Request r;
  double start = now_us();
  MPI_Issend(s->buffer, (int)s->bytes, MPI_BYTE, 1, tag_data, MPI_COMM_WORLD, &r);
  double from = now_us();
  if (units) compute(units);
  *computed = now_us() - from;
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  return now_us() - start;
}

static double once_receiving(const struct Setup* s, uint64_t units, double* computed) {
  MPI_Request r;
  double start = now_us();
  MPI_Irecv(s->buffer, (int)s->bytes, MPI_BYTE, 0, tag_data, MPI_COMM_WORLD, &r);
  double from = now_us();
  if (units) compute(units);
  *computed = now_us() - from;
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  return now_us() - start;
}

// One step: the driver says how many repetitions; the other rank only answers. The first one is
// not counted: it carries the skew of the broadcast.
static struct Step run_step(const struct Setup* s, uint64_t units, int reps) {
  static double times[2 * most + 1], computing[2 * most + 1];
  struct Step step = {0, 0};
  share(&reps, sizeof reps, s->driver, s->rank);
  for (int i = 0; i < reps + 1; i++) {
    if (s->rank == s->driver) {
      times[i] = s->send_side ? once_sending(s, units, &computing[i])
                              : once_receiving(s, units, &computing[i]);
    } else if (s->send_side) {
      MPI_Recv(s->buffer, (int)s->bytes, MPI_BYTE, 0, tag_data, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Ssend(s->buffer, (int)s->bytes, MPI_BYTE, 1, tag_data, MPI_COMM_WORLD);
    }
  }
  if (s->rank == s->driver) {
    step.l = median(times + 1, reps);
    step.computed = median(computing + 1, reps);
  }
  return step;
}

static int reps_for(const struct Setup* s, double l0) {
  int reps = (int)(s->step_us / (l0 > 0.05 ? l0 : 0.05));
  return reps < fewest ? fewest : reps > most ? most : reps;
}

// Tells the other rank whether another step comes; the driver decides.
static int agree(const struct Setup* s, int go_on) {
  share(&go_on, sizeof go_on, s->driver, s->rank);
  return go_on;
}

struct Found {
  double l0, l0_after, c, l, overlap, slowdown;
  double stop_c, stop_l;  // the step that ended the search; 0 if none did
  int steps;
};

static struct Found search(const struct Setup* s) {
  struct Found f = {0};
  int driving = s->rank == s->driver, exceeded = 0;
  f.l0 = run_step(s, 0, fewest).l;  // warm-up; also tells how many repetitions fit
  int reps = driving ? reps_for(s, f.l0) : 0;
  f.l0 = run_step(s, 0, reps).l;
  f.l = f.l0;
  for (int m = 1; m <= 10; m++) {
    double c = f.l0 * m / 10;
    uint64_t units = (uint64_t)(c * 1e3 / s->ns_per_unit + 0.5);
    struct Step step = run_step(s, units, reps);
    if (agree(s, step.l > 1.1 * f.l0)) {
      step = run_step(s, units, 2 * reps);
      exceeded = agree(s, step.l > 1.1 * f.l0);
    }
    if (c > 0 && (!exceeded || m == 1)) f.slowdown = step.computed / c - 1;
    if (exceeded) {
      f.stop_c = c;
      f.stop_l = step.l;
      break;
    }
    f.c = c;
    f.l = step.l;
    f.steps = m;
  }
  f.l0_after = run_step(s, 0, reps).l;
  if (driving) f.overlap = exceeded ? (f.c - (f.l - f.l0)) / f.l0 : 1;
  return f;
}

static void report(const struct Setup* s, const struct Found* f, double before, double after) {
  printf(
      "@@{\"measure\":\"overlap_%s\",\"size\":%zu,\"buffers\":\"hot\",\"unit\":\"share\","
      "\"probe\":[%.1f,%.1f],\"samples\":[%.4f],\"extra\":{\"l0_us\":%.3f,\"l0_after_us\":%.3f,"
      "\"c_us\":%.3f,\"l_us\":%.3f,\"equation4\":%.4f,\"steps\":%d,\"slowdown\":%.4f,"
      "\"stop_c_us\":%.3f,\"stop_l_us\":%.3f}}\n",
      s->send_side ? "send" : "recv", s->bytes, before, after, f->overlap, f->l0, f->l0_after, f->c,
      f->l, (f->c - (f->l - f->l0)) / f->l0, f->steps, f->slowdown, f->stop_c, f->stop_l);
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
  int searches = (int)arg_number(argc, argv, "--searches", 2);
  for (int i = 0; i < n; i++) {
    s.bytes = sizes[i];
    s.buffer = new_buffer(s.bytes);
    for (int k = 0; k < 2 * searches; k++) {
      s.send_side = k % 2;
      s.driver = s.send_side ? 0 : 1;
      s.ns_per_unit = calibrate_compute();
      double before = probe_line(s.rank);
      struct Found f = search(&s);
      double after = probe_line(s.rank);
      bring_to_zero(&s, &f);
      if (s.rank == 0) report(&s, &f, before, after);
    }
    free(s.buffer);
  }
  MPI_Finalize();
  return 0;
}
