// A collective between two halves of the ranks, beside the same one within a half: batches of both
// in turns, rank 0's time of a call, so that their ratio holds on a machine with other work.
//   --call allreduce|bcast|barrier   --sizes LIST (bytes)   --batches N   --calls N (a batch)
// A bcast is from the first rank of the one half and of the other in turns; within a half from its
// first rank. Compile it with any MPI's wrapper, as collective.c, and with
// -I tools/headway/headway/programs.
#include "common.h"

struct Setup {
  int half, rank, beyond;  // which half, the rank in it, how many ranks the other one has
  const char* call;
  MPI_Comm within, between;
  char *out, *in;
};

static void within(const struct Setup* s, size_t bytes, int n) {
  for (int i = 0; i < n; i++) {
    if (strcmp(s->call, "allreduce") == 0)
      MPI_Allreduce(s->out, s->in, (int)(bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM, s->within);
    else if (strcmp(s->call, "bcast") == 0)
      MPI_Bcast(s->in, (int)bytes, MPI_BYTE, 0, s->within);
    else
      MPI_Barrier(s->within);
  }
}

static void between(const struct Setup* s, size_t bytes, int n) {
  for (int i = 0; i < n; i++) {
    if (strcmp(s->call, "allreduce") == 0) {
      MPI_Allreduce(s->out, s->in, (int)(bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM, s->between);
    } else if (strcmp(s->call, "bcast") == 0) {
      int root = i % 2 != s->half ? 0 : s->rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
      MPI_Bcast(root == 0 ? s->in : s->out, (int)bytes, MPI_BYTE, root, s->between);
    } else {
      MPI_Barrier(s->between);
    }
  }
}

// The answer must be right, or its time means nothing.
static void check(const struct Setup* s, size_t bytes) {
  int doubles = (int)(bytes / sizeof(double));
  if (strcmp(s->call, "allreduce") == 0) {
    for (int i = 0; i < doubles; i++) ((double*)s->out)[i] = 1 + s->half + i % 5;
    between(s, bytes, 1);
    for (int i = 0; i < doubles; i++)
      if (((double*)s->in)[i] != s->beyond * (2 - s->half + i % 5))
        fail("allreduce gave a wrong sum");
  } else if (strcmp(s->call, "bcast") == 0) {
    memset(s->out, 3 + s->half, bytes);
    memset(s->in, 0, bytes);
    between(s, bytes, 2);
    for (size_t i = 0; i < bytes; i++)
      if (s->in[i] != 4 - s->half) fail("bcast gave wrong bytes");
  }
}

static double timed(void (*calls)(const struct Setup*, size_t, int), const struct Setup* s,
                    size_t bytes, int n) {
  calls(s, bytes, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now_us();
  calls(s, bytes, n);
  MPI_Barrier(MPI_COMM_WORLD);
  return (now_us() - start) / n;
}

static void measure(const struct Setup* s, size_t bytes, int batches, int n) {
  double inside[max_samples], across[max_samples], ratios[max_samples];
  if (batches > max_samples) batches = max_samples;
  check(s, bytes);
  for (int b = 0; b < batches; b++) {
    inside[b] = timed(within, s, bytes, n);
    across[b] = timed(between, s, bytes, n);
    ratios[b] = across[b] / inside[b];
  }
  if (s->half == 0 && s->rank == 0)
    printf("%s %zu B: within %.2f us, between %.2f us, ratio %.2f\n", s->call, bytes,
           median(inside, batches), median(across, batches), median(ratios, batches));
}

int main(int argc, char** argv) {
  struct Setup s;
  size_t sizes[max_sizes], largest = 8;
  int n = arg_sizes(argc, argv, "8,1024,65536,1048576", sizes), rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2) fail("between.c wants two ranks or more");
  int first = ranks / 2;
  s.half = rank < first ? 0 : 1;
  s.beyond = s.half ? first : ranks - first;
  s.call = arg_text(argc, argv, "--call", "allreduce");
  MPI_Comm_split(MPI_COMM_WORLD, s.half, rank, &s.within);
  MPI_Comm_rank(s.within, &s.rank);
  MPI_Intercomm_create(s.within, 0, MPI_COMM_WORLD, s.half ? 0 : first, 1, &s.between);
  for (int i = 0; i < n; i++)
    if (sizes[i] > largest) largest = sizes[i];
  s.out = new_buffer(largest);
  s.in = new_buffer(largest);
  int batches = (int)arg_number(argc, argv, "--batches", 9);
  int calls = (int)arg_number(argc, argv, "--calls", 200);
  for (int i = 0; i < n; i++) measure(&s, sizes[i], batches, calls);
  MPI_Comm_free(&s.between);
  MPI_Comm_free(&s.within);
  MPI_Finalize();
  return 0;
}
