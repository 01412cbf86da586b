// Receives long messages into a plain malloc buffer and uses them as programs do: page after page
// in order, at random or from the end, each page with some computation, or all at once. Where a
// receive may return before its data has come, the computation hides the transfer: with as much of
// the one as of the other the ideal gain is 2.
// Timed at the receiver, from the moment it says that it is ready until it has used the last page.
// --touch order|random|reverse|once  --consume-us T: computation for the whole message (once: none)
#include "common.h"

enum { page = 4096 };

struct Plan {
  size_t size, pages;
  size_t* order;   // of the pages
  double page_us;  // computation a page
  int messages, warmup;
};

static uint64_t mark_of(int round, size_t number) {
  return ((uint64_t)(round + 1) * 0x9e3779b97f4a7c15ull) ^ (number * 0xd1b54a32d192ed03ull);
}

// The sender marks each page's worth of a message, so that old data is noticed.
static void mark(char* buffer, const struct Plan* plan, int round) {
  for (size_t i = 0; i < plan->pages; i++) {
    uint64_t m = mark_of(round, i);
    size_t at = i * page, room = plan->size - at;
    memcpy(buffer + at, &m, room < sizeof m ? room : sizeof m);
  }
}

static void use_page(const char* buffer, const struct Plan* plan, int round, size_t number) {
  size_t at = number * page, end = at + page < plan->size ? at + page : plan->size;
  uint64_t seen = 0, expected = 0, m = mark_of(round, number);
  size_t n = end - at < sizeof m ? end - at : sizeof m;
  read_lines(buffer + at, end - at);
  memcpy(&seen, buffer + at, n);
  memcpy(&expected, &m, n);
  if (seen != expected) fail("a page does not hold what was sent");
}

static void consume(const char* buffer, const struct Plan* plan, int round) {
  for (size_t i = 0; i < plan->pages; i++) {
    use_page(buffer, plan, round, plan->order[i]);
    if (plan->page_us > 0) {
      double end = now_us() + plan->page_us;
      while (now_us() < end) {
      }
    }
  }
}

static void make_order(struct Plan* plan, const char* touch) {
  plan->order = malloc((plan->pages ? plan->pages : 1) * sizeof *plan->order);
  if (!plan->order) fail("out of memory");
  for (size_t i = 0; i < plan->pages; i++) plan->order[i] = i;
  if (strcmp(touch, "reverse") == 0) {
    for (size_t i = 0; i < plan->pages; i++) plan->order[i] = plan->pages - 1 - i;
  } else if (strcmp(touch, "random") == 0) {
    uint64_t x = 88172645463325252ull;
    for (size_t i = plan->pages; i > 1; i--) {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      size_t j = (size_t)(x % i), kept = plan->order[i - 1];
      plan->order[i - 1] = plan->order[j];
      plan->order[j] = kept;
    }
  } else if (strcmp(touch, "order") != 0 && strcmp(touch, "once") != 0) {
    fail("--touch is order, random, reverse or once");
  }
}

static void send_all(char* buffer, const struct Plan* plan) {
  char ready;
  for (int round = 0; round < plan->warmup + plan->messages; round++) {
    mark(buffer, plan, round);
    MPI_Recv(&ready, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(buffer, (int)plan->size, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
  }
}

// Returns the samples in us, without those of the warm-up.
static void receive_all(char* buffer, const struct Plan* plan, double* samples) {
  char ready = 1;
  for (int round = 0; round < plan->warmup + plan->messages; round++) {
    MPI_Request request;
    MPI_Irecv(buffer, (int)plan->size, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
    double start = now_us();
    MPI_Send(&ready, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    consume(buffer, plan, round);
    if (round >= plan->warmup) samples[round - plan->warmup] = now_us() - start;
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("stream_consumer wants two ranks");
  const char* touch = arg_text(argc, argv, "--touch", "order");
  struct Plan plan = {.size = (size_t)arg_number(argc, argv, "--size", 1 << 20),
                      .messages = (int)arg_number(argc, argv, "--messages", 30),
                      .warmup = (int)arg_number(argc, argv, "--warmup", 10)};
  if (plan.size < 1 || plan.size > (1u << 30)) fail("--size is from 1 byte to 1 GB");
  if (plan.messages < 1 || plan.messages > max_samples) fail("--messages is from 1 to 4096");
  if (plan.warmup < 0) fail("--warmup is 0 or more");
  plan.pages = (plan.size + page - 1) / page;
  make_order(&plan, touch);
  if (strcmp(touch, "once") != 0) {
    plan.page_us = arg_number(argc, argv, "--consume-us", 0) / (double)plan.pages;
  }
  char* buffer = new_buffer(plan.size);
  static double samples[max_samples];
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    send_all(buffer, &plan);
  } else {
    receive_all(buffer, &plan, samples);
    print_samples(touch, plan.size, "dirty", "us", 0, 0, samples, plan.messages);
  }
  free(buffer);
  free(plan.order);
  MPI_Finalize();
  return 0;
}
