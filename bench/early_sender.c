// A sender that has its message ready, computes on, and then sends it, to a receiver that waits:
// where the finished part of a message travels before its send, the computation hides the transfer.
// With as much of the one as of the other the ideal gain is 2. Timed at the sender, from one
// message to the next; the receiver answers each with an empty one.
// --size BYTES  --compute-us T: between the last write to the buffer and the send
// --messages N  --warmup N  --rewrite PERCENT: of the pages, written again right before the send
// --buffers N: messages come from so many buffers by rounds; with as many buffers as messages none
// ever comes from where another one came from
#include "common.h"

enum { page = 4096 };

static void compute_for(double us) {
  double end = now_us() + us;
  while (now_us() < end) {
  }
}

// Each message differs from the one before in every word that is looked at.
static void write_all(char* buffer, size_t size, int round) {
  for (size_t at = 0; at + 8 <= size; at += 64) {
    uint64_t word = ((uint64_t)(round + 1) * 0x9e3779b97f4a7c15ull) ^ at;
    memcpy(buffer + at, &word, 8);
  }
}

static void look_at_all(const char* buffer, size_t size, int round) {
  for (size_t at = 0; at + 8 <= size; at += 64) {
    uint64_t seen, expected = ((uint64_t)(round + 1) * 0x9e3779b97f4a7c15ull) ^ at;
    memcpy(&seen, buffer + at, 8);
    if (seen != expected) fail("a message does not hold what was sent");
  }
}

static void write_again(char* buffer, size_t size, int round, double percent) {
  size_t pages = (size_t)((double)(size / page) * percent / 100.0);
  for (size_t i = 0; i < pages; i++) {
    size_t at = (i * 7919 % (size / page)) * page / 64 * 64;
    uint64_t word = ((uint64_t)(round + 1) * 0x9e3779b97f4a7c15ull) ^ at;
    memcpy(buffer + at, &word, 8);
  }
}

struct Plan {
  size_t size;
  double compute_us, rewrite;  // rewrite: percent
  int messages, warmup, buffers;
};

static struct Plan plan_of(int argc, char** argv) {
  struct Plan plan = {.size = (size_t)arg_number(argc, argv, "--size", 1 << 20),
                      .compute_us = arg_number(argc, argv, "--compute-us", 90000),
                      .rewrite = arg_number(argc, argv, "--rewrite", 0),
                      .messages = (int)arg_number(argc, argv, "--messages", 20),
                      .warmup = (int)arg_number(argc, argv, "--warmup", 8),
                      .buffers = (int)arg_number(argc, argv, "--buffers", 1)};
  if (plan.size < 64 || plan.size > (1u << 30)) fail("--size is from 64 bytes to 1 GB");
  if (plan.messages < 1 || plan.messages > max_samples) fail("--messages is from 1 to 4096");
  if (plan.warmup < 0) fail("--warmup is 0 or more");
  if (plan.rewrite < 0 || plan.rewrite > 100) fail("--rewrite is from 0 to 100");
  if (plan.buffers < 1) fail("--buffers is 1 or more");
  return plan;
}

static void send_one(char* buffer, const struct Plan* plan, int round) {
  write_all(buffer, plan->size, round);
  compute_for(plan->compute_us);
  write_again(buffer, plan->size, round, plan->rewrite);
  MPI_Send(buffer, (int)plan->size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_one(char* buffer, const struct Plan* plan, int round) {
  MPI_Recv(buffer, (int)plan->size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
  look_at_all(buffer, plan->size, round);
}

static void run(int rank, char* buffers, const struct Plan* plan, double* took) {
  for (int round = 0; round < plan->warmup + plan->messages; round++) {
    double start = now_us();
    if (rank == 0) {
      send_one(buffers + (size_t)(round % plan->buffers) * plan->size, plan, round);
    } else {
      receive_one(buffers, plan, round);
    }
    if (round >= plan->warmup) took[round - plan->warmup] = now_us() - start;
  }
}

static void print_result(const struct Plan* plan, double* took) {
  printf("{\"size\": %zu, \"compute_us\": %.1f, \"messages\": %d, \"rewrite\": %g, ", plan->size,
         plan->compute_us, plan->messages, plan->rewrite);
  printf("\"buffers\": %d, \"samples\": [", plan->buffers);
  for (int i = 0; i < plan->messages; i++) printf("%s%.2f", i ? ", " : "", took[i]);
  printf("], \"us\": %.2f}\n", median(took, plan->messages));
  fflush(stdout);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("needs two ranks");
  const struct Plan plan = plan_of(argc, argv);
  size_t all = plan.size * (size_t)(rank == 0 ? plan.buffers : 1);
  char* buffers = malloc(all);
  double* took = malloc((size_t)plan.messages * sizeof *took);
  if (!buffers || !took) fail("out of memory");
  memset(buffers, 0, all);
  run(rank, buffers, &plan, took);
  if (rank == 0) print_result(&plan, took);
  free(took);
  free(buffers);
  MPI_Finalize();
  return 0;
}
