// Two ranks and long queues, under any MPI: what one match costs in a whole library, worst order
// for a list. One result for each length:
//   unexpected  rank 1 takes N messages that lie there, the newest first: ns a receive
//   posted      one-way time, ns, of a small message whose receive stands behind N - 1 others
// queues [--sizes N,N,...] [--repeats R] [--page FILE]
#include "common.h"

enum { end_tag = 0, most_messages = 65536 };

static int rank;

static double clock_cost_us(void) {
  double costs[101];
  for (int i = 0; i < 101; i++) {
    double start = now_us();
    costs[i] = now_us() - start;
  }
  return median(costs, 101);
}

static double take_all(int n, double clock) {
  uint64_t value = 0;
  double took = 0;
  if (rank == 0) {
    for (int i = 1; i <= n; i++) {
      value = (uint64_t)i;
      MPI_Send(&value, sizeof value, MPI_BYTE, 1, i, MPI_COMM_WORLD);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 1, end_tag, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, end_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    // It overtakes none of the others: now they are all here.
    MPI_Recv(NULL, 0, MPI_BYTE, 0, end_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    uint64_t sum = 0;
    double start = now_us();
    for (int i = n; i >= 1; i--) {
      MPI_Recv(&value, sizeof value, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      sum += value;
    }
    took = (now_us() - start - clock) * 1e3 / n;
    if (sum != (uint64_t)n * (uint64_t)(n + 1) / 2) fail("a message brought wrong data");
    MPI_Send(NULL, 0, MPI_BYTE, 0, end_tag, MPI_COMM_WORLD);
  }
  return took;
}

static double trip(int trips) {
  uint64_t value = 7;
  double start = now_us();
  for (int i = 0; i < trips; i++) {
    if (rank == 0) {
      MPI_Send(&value, sizeof value, MPI_BYTE, 1, end_tag, MPI_COMM_WORLD);
      MPI_Recv(&value, sizeof value, MPI_BYTE, 1, end_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&value, sizeof value, MPI_BYTE, 0, end_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&value, sizeof value, MPI_BYTE, 0, end_tag, MPI_COMM_WORLD);
    }
  }
  return (now_us() - start) * 1e3 / (2.0 * trips);
}

// Rank 1's receives for tags 1 to N - 1 wait in front, and get their messages at the end.
static void behind_posted(int n, int repeats, double* samples) {
  uint64_t* in = calloc((size_t)n, sizeof *in);
  MPI_Request* requests = calloc((size_t)n, sizeof *requests);
  if (!in || !requests) fail("out of memory");
  for (int i = 1; rank == 1 && i < n; i++)
    MPI_Irecv(&in[i], sizeof *in, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
  int trips = 3 + 200000 / (n + 400);
  trip(3);
  for (int r = 0; r < repeats; r++) samples[r] = trip(trips);
  for (int i = 1; rank == 0 && i < n; i++) {
    uint64_t value = (uint64_t)i;
    MPI_Send(&value, sizeof value, MPI_BYTE, 1, i, MPI_COMM_WORLD);
  }
  if (rank == 1) {
    MPI_Waitall(n - 1, requests + 1, MPI_STATUSES_IGNORE);
    for (int i = 1; i < n; i++)
      if (in[i] != (uint64_t)i) fail("a message came into a wrong receive");
  }
  free(in);
  free(requests);
}

int main(int argc, char** argv) {
  size_t lengths[max_sizes];
  double samples[max_samples];
  int ranks;
  int n = arg_sizes(argc, argv, "1,2,4,8,16,64,256,1024,4096,16384", lengths);
  int repeats = (int)arg_number(argc, argv, "--repeats", 9);
  if (repeats < 1 || repeats > max_samples) fail("--repeats is out of range");
  pin_before_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("queues wants two ranks");
  pin_to_core(rank);
  probe_open(ranks, arg_text(argc, argv, "--page", NULL));
  double clock = clock_cost_us();
  for (int i = 0; i < n; i++) {
    if (lengths[i] < 1 || lengths[i] > most_messages) fail("--sizes is out of range");
    int length = (int)lengths[i];
    // Short queues are quick, and a single one is near the clock's own cost.
    int rounds = length <= 16 ? repeats * 20 : repeats;
    if (rounds > max_samples) rounds = max_samples;
    double before = probe_line(rank);
    take_all(length, clock);
    for (int r = 0; r < rounds; r++) samples[r] = take_all(length, clock);
    double after = probe_line(rank);
    if (rank == 1) {
      double middle = median(samples, rounds);
      print_samples("unexpected", lengths[i], "hot", "ns", before, after, &middle, 1);
    }
    before = probe_line(rank);
    behind_posted(length, repeats, samples);
    after = probe_line(rank);
    if (rank == 0)
      print_samples("posted", lengths[i], "hot", "ns", before, after, samples, repeats);
  }
  MPI_Finalize();
  return 0;
}
