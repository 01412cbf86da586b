// A sender that has its message ready, computes on, and then sends it, to a receiver that waits:
// where the finished part of a message travels before its send, the computation hides the transfer.
// With as much of the one as of the other the ideal gain is 2. Timed at the sender, from one
// message to the next; the receiver answers each with an empty one.
// --size BYTES  --compute-us T: between the last write to the buffer and the send
// --messages N  --warmup N  --rewrite PERCENT: of the pages, written again right before the send
#include "common.h"

enum { page = 4096 };

static void compute(double us) {
  double end = now_us() + us;
  while (now_us() < end) {
  }
}

// Each message differs from the one before in every word that is looked at.
static void write_all(char* buffer, size_t size, int turn) {
  for (size_t at = 0; at + 8 <= size; at += 64) {
    uint64_t word = ((uint64_t)(turn + 1) * 0x9e3779b97f4a7c15ull) ^ at;
    memcpy(buffer + at, &word, 8);
  }
}

static void look_at_all(const char* buffer, size_t size, int turn) {
  for (size_t at = 0; at + 8 <= size; at += 64) {
    uint64_t seen, expected = ((uint64_t)(turn + 1) * 0x9e3779b97f4a7c15ull) ^ at;
    memcpy(&seen, buffer + at, 8);
    if (seen != expected) fail("a message does not hold what was sent");
  }
}

static void write_again(char* buffer, size_t size, int turn, double percent) {
  size_t pages = (size_t)((double)(size / page) * percent / 100.0);
  for (size_t i = 0; i < pages; i++) {
    size_t at = (i * 7919 % (size / page)) * page / 64 * 64;
    uint64_t word = ((uint64_t)(turn + 1) * 0x9e3779b97f4a7c15ull) ^ at;
    memcpy(buffer + at, &word, 8);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("needs two ranks");
  size_t size = (size_t)arg_number(argc, argv, "--size", 1 << 20);
  double us = arg_number(argc, argv, "--compute-us", 90000);
  int messages = (int)arg_number(argc, argv, "--messages", 20);
  int warmup = (int)arg_number(argc, argv, "--warmup", 8);
  double percent = arg_number(argc, argv, "--rewrite", 0);
  if (size < 64 || messages < 1 || messages > max_samples) fail("bad arguments");
  char* buffer = malloc(size);
  double* took = malloc((size_t)messages * sizeof *took);
  if (!buffer || !took) fail("out of memory");
  memset(buffer, 0, size);
  for (int turn = -warmup; turn < messages; turn++) {
    double start = now_us();
    if (rank == 0) {
      write_all(buffer, size, turn + warmup);
      compute(us);
      write_again(buffer, size, turn + warmup, percent);
      MPI_Send(buffer, (int)size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, (int)size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
      look_at_all(buffer, size, turn + warmup);
    }
    if (turn >= 0) took[turn] = now_us() - start;
  }
  if (rank == 0) {
    printf(
        "{\"size\": %zu, \"compute_us\": %.1f, \"messages\": %d, \"rewrite\": %g, \"us\": %.2f}\n",
        size, us, messages, percent, median(took, messages));
    fflush(stdout);
  }
  free(took);
  free(buffer);
  MPI_Finalize();
  return 0;
}
