// Several threads of one rank that match at the same time, each on a communicator of its own: what
// one message to oneself costs. No transport is in it: post, match, complete, and the library's
// locks. threads [--sizes 1,2] [--repeats R]: ns a message of all threads together, one result a
// number.
#include "common.h"

#include <pthread.h>

enum { window = 16, most_threads = 16 };

struct Worker {
  pthread_t thread;
  MPI_Comm comm;
  int rounds;
  double from, to;
};

static pthread_barrier_t line_up;

static void* work(void* context) {
  struct Worker* w = context;
  uint64_t out[window], in[window];
  MPI_Request requests[window];
  pthread_barrier_wait(&line_up);
  w->from = now_us();
  for (int round = 0; round < w->rounds; round++) {
    for (int i = 0; i < window; i++)
      MPI_Irecv(&in[i], sizeof in[i], MPI_BYTE, 0, i, w->comm, &requests[i]);
    for (int i = window; i-- > 0;) {
      out[i] = (uint64_t)(round + i);
      MPI_Send(&out[i], sizeof out[i], MPI_BYTE, 0, i, w->comm);
    }
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < window; i++)
      if (in[i] != (uint64_t)(round + i)) fail("a message came into a wrong receive");
  }
  w->to = now_us();
  return NULL;
}

static double together(struct Worker* workers, int n, int rounds) {
  if (pthread_barrier_init(&line_up, NULL, (unsigned)n)) fail("no barrier");
  for (int i = 0; i < n; i++) {
    workers[i].rounds = rounds;
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) fail("no thread");
  }
  double from = 1e300, to = 0;
  for (int i = 0; i < n; i++) {
    pthread_join(workers[i].thread, NULL);
    if (workers[i].from < from) from = workers[i].from;
    if (workers[i].to > to) to = workers[i].to;
  }
  pthread_barrier_destroy(&line_up);
  return (to - from) * 1e3 / ((double)rounds * window * n);
}

int main(int argc, char** argv) {
  struct Worker workers[most_threads];
  size_t counts[max_sizes];
  double samples[max_samples];
  int level, n = arg_sizes(argc, argv, "1,2", counts);
  int repeats = (int)arg_number(argc, argv, "--repeats", 15);
  if (repeats < 1 || repeats > max_samples) fail("--repeats is out of range");
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level != MPI_THREAD_MULTIPLE) fail("this MPI does not give MPI_THREAD_MULTIPLE");
  for (int i = 0; i < most_threads; i++) MPI_Comm_dup(MPI_COMM_SELF, &workers[i].comm);
  for (int i = 0; i < n; i++) {
    int threads = (int)counts[i];
    if (threads < 1 || threads > most_threads) fail("--sizes is out of range");
    together(workers, threads, 300);
    for (int r = 0; r < repeats; r++) samples[r] = together(workers, threads, 3000);
    print_samples("threads", counts[i], "hot", "ns", 0, 0, samples, repeats);
  }
  for (int i = 0; i < most_threads; i++) MPI_Comm_free(&workers[i].comm);
  MPI_Finalize();
  return 0;
}
