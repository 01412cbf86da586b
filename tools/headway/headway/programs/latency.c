// Latency: ping-pong between two ranks; one sample = half the round trip, averaged over a batch of
// about two milliseconds. Each batch has a probe before and after it.
//   --sizes LIST  --buffers hot,dirty  --batches N  --batch-us T  --pending 1
// --pending: both ranks have an unrelated receive posted all the time, so a library with a
// progress thread has something to hand over whenever a rank leaves a call.
#include "common.h"

struct Setup {
  int rank, batches;
  double batch_us;
  char *out, *in;
};

static void round_trips(const struct Setup* s, size_t bytes, int dirty, int trips) {
  for (int i = 0; i < trips; i++) {
    if (s->rank == 0) {
      if (dirty) write_lines(s->out, bytes, (unsigned)i);
      MPI_Send(s->out, (int)bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(s->in, (int)bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (dirty) read_lines(s->in, bytes);
    } else {
      MPI_Recv(s->in, (int)bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (dirty) {
        read_lines(s->in, bytes);
        write_lines(s->out, bytes, (unsigned)i);
      }
      MPI_Send(s->out, (int)bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
  }
}

// Warm-up, then as many round trips as fill a batch; rank 0 decides.
static int trips_for(const struct Setup* s, size_t bytes, int dirty) {
  round_trips(s, bytes, dirty, 3);
  double start = now_us();
  round_trips(s, bytes, dirty, 8);
  double each = (now_us() - start) / 8;
  int trips = (int)(s->batch_us / (each > 0.05 ? each : 0.05));
  if (trips < 3) trips = 3;
  if (trips > 20000) trips = 20000;
  share(&trips, sizeof trips, 0, s->rank);
  round_trips(s, bytes, dirty, trips / 4 + 1);
  return trips;
}

static void measure(const struct Setup* s, size_t bytes, int dirty) {
  int trips = trips_for(s, bytes, dirty);
  double before = probe_line(s->rank);
  for (int b = 0; b < s->batches; b++) {
    round_trips(s, bytes, dirty, 1);
    double start = now_us();
    round_trips(s, bytes, dirty, trips);
    double sample = (now_us() - start) / trips / 2;
    double after = probe_line(s->rank);
    if (s->rank == 0)
      print_samples("latency", bytes, dirty ? "dirty" : "hot", "us", before, after, &sample, 1);
    before = after;
  }
}

int main(int argc, char** argv) {
  struct Setup s;
  size_t sizes[max_sizes], largest = 0;
  int ranks, n = arg_sizes(argc, argv, "1,1024", sizes);
  pin_before_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("latency wants two ranks");
  pin_to_core(s.rank);
  probe_open(ranks, arg_text(argc, argv, "--page", NULL));
  const char* buffers = arg_text(argc, argv, "--buffers", "hot,dirty");
  s.batches = (int)arg_number(argc, argv, "--batches", 8);
  s.batch_us = arg_number(argc, argv, "--batch-us", 2000);
  for (int i = 0; i < n; i++)
    if (sizes[i] > largest) largest = sizes[i];
  s.out = new_buffer(largest);
  s.in = new_buffer(largest);
  MPI_Request pending = MPI_REQUEST_NULL;
  char unrelated = 0, answer = 1;
  if (arg_number(argc, argv, "--pending", 0) > 0)
    MPI_Irecv(&unrelated, 1, MPI_BYTE, 1 - s.rank, 77, MPI_COMM_WORLD, &pending);
  for (int i = 0; i < n; i++) {
    if (strstr(buffers, "hot")) measure(&s, sizes[i], 0);
    if (strstr(buffers, "dirty")) measure(&s, sizes[i], 1);
  }
  if (pending != MPI_REQUEST_NULL) {
    MPI_Send(&answer, 1, MPI_BYTE, 1 - s.rank, 77, MPI_COMM_WORLD);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    if (unrelated != 1) fail("the unrelated receive did not get its byte");
  }
  MPI_Finalize();
  return 0;
}
