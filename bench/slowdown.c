// What a transfer costs a fixed computation beside it. The computation is a stencil over 256 KB,
// the same number of sweeps for everybody, chosen to last about --work-us.
//   recv: rank 1 posts Irecv, computes, waits; rank 0 is blocked in Send
//   send: rank 0 posts Isend, computes, waits; rank 1 is blocked in Recv
//   both: both post Irecv and Isend, compute, wait
// Two answers, each against the computation alone, measured in turns with it:
//   slowdown_*: (call + computation + wait) / computation alone - 1: what the program loses in all
//   stretch_*:  computation beside the transfer / alone - 1: what it loses inside its own loop
//   --sizes LIST  --work-us T  --reps N
#include "common.h"

enum { tag_data = 5, cells = 32768, max_reps = 500 };

static double field[2][cells];

static void sweep(int times) {
  for (int t = 0; t < times; t++) {
    const double* from = field[t % 2];
    double* to = field[(t + 1) % 2];
    for (int i = 1; i + 1 < cells; i++)
      to[i] = 0.25 * from[i - 1] + 0.5 * from[i] + 0.25 * from[i + 1];
    __asm__ volatile("" : : "r"(to) : "memory");
  }
}

enum Side { side_recv, side_send, side_both };
static const char* const side_names[] = {"recv", "send", "both"};

struct Setup {
  int rank, sweeps, reps;
  size_t bytes;
  char *out, *in;
  enum Side side;
};

static int computes(const struct Setup* s) {
  return s->side == side_both || (s->side == side_recv) == (s->rank == 1);
}

static double alone(const struct Setup* s) {
  double start = now_us();
  sweep(s->sweeps);
  return now_us() - start;
}

// The transfer with the computation beside it; the time in all and of the computation.
static double beside(const struct Setup* s, double* computing) {
  MPI_Request r[2];
  int n = 0;
  double start = now_us();
  if (s->side == side_both || s->rank == 1)
    MPI_Irecv(s->in, (int)s->bytes, MPI_BYTE, 1 - s->rank, tag_data, MPI_COMM_WORLD, &r[n++]);
  if (s->side == side_both || s->rank == 0)
    MPI_Isend(s->out, (int)s->bytes, MPI_BYTE, 1 - s->rank, tag_data, MPI_COMM_WORLD, &r[n++]);
  *computing = alone(s);
  MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
  return now_us() - start;
}

static void only_transfer(const struct Setup* s) {
  if (s->rank == 0)
    MPI_Send(s->out, (int)s->bytes, MPI_BYTE, 1, tag_data, MPI_COMM_WORLD);
  else
    MPI_Recv(s->in, (int)s->bytes, MPI_BYTE, 0, tag_data, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void measure(const struct Setup* s) {
  static double total[max_reps], stretch[max_reps];
  int judge = s->side == side_recv ? 1 : 0;
  double answer[2] = {0, 0}, base = 0, computing = 0, probes[2];
  static double bases[max_reps];
  probes[0] = probe_line(s->rank);
  for (int i = 0; i < s->reps; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (computes(s)) base = alone(s);
    MPI_Barrier(MPI_COMM_WORLD);
    if (computes(s)) {
      total[i] = beside(s, &computing);
      stretch[i] = computing;
      bases[i] = base;
    } else {
      only_transfer(s);
    }
  }
  probes[1] = probe_line(s->rank);
  if (s->rank == judge) {
    base = median(bases, s->reps);
    answer[0] = median(total, s->reps) / base - 1;
    answer[1] = median(stretch, s->reps) / base - 1;
    if (judge != 0) MPI_Send(answer, 2, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD);
  } else if (judge != 0) {
    MPI_Recv(answer, 2, MPI_DOUBLE, judge, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (s->rank != 0) return;
  char name[32];
  for (int i = 0; i < 2; i++) {
    snprintf(name, sizeof name, "%s_%s", i ? "stretch" : "slowdown", side_names[s->side]);
    print_samples(name, s->bytes, "hot", "share", probes[0], probes[1], &answer[i], 1);
  }
}

// Sweeps that last about `us`; the quickest of several, agreed by both ranks.
static int calibrate(double us, int rank) {
  double best = 1e30;
  for (int i = 0; i < 9; i++) {
    double start = now_us();
    sweep(4);
    double t = (now_us() - start) / 4;
    if (t < best) best = t;
  }
  int sweeps = (int)(us / best + 0.5);
  if (sweeps < 1) sweeps = 1;
  share(&sweeps, sizeof sweeps, 0, rank);
  return sweeps;
}

int main(int argc, char** argv) {
  struct Setup s;
  size_t sizes[max_sizes];
  int ranks, n = arg_sizes(argc, argv, "1048576", sizes);
  pin_before_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("slowdown wants two ranks");
  pin_to_core(s.rank);
  probe_open(ranks, arg_text(argc, argv, "--page", NULL));
  s.reps = (int)arg_number(argc, argv, "--reps", 20);
  if (s.reps < 1 || s.reps > max_reps) fail("--reps must be 1 to 500");
  for (int i = 0; i < cells; i++) field[0][i] = field[1][i] = i % 17;
  s.sweeps = calibrate(arg_number(argc, argv, "--work-us", 1000), s.rank);
  for (int i = 0; i < n; i++) {
    s.bytes = sizes[i];
    s.out = new_buffer(s.bytes);
    s.in = new_buffer(s.bytes);
    for (int side = side_recv; side <= side_both; side++) {
      s.side = (enum Side)side;
      measure(&s);
    }
    free(s.out);
    free(s.in);
  }
  MPI_Finalize();
  return 0;
}
