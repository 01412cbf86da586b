// What this machine takes to copy a message from one process to another, without any MPI: by one
// core alone, and by two that share the work. Beside it stands the machine's bound of overlap. Two
// processes, on cores 0 and 1; the sender has just written its message. One copy by the kernel:
// process_vm_readv, and its twin for the sender's half if both work. Where the kernel does not
// allow it, nothing is printed, and the bound is not known.
//   --sizes LIST  --reps N
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most_reps = 200 };

// How the sender takes part in a round.
enum Part { only_write = 1, half_over, end };

struct Shared {
  _Atomic unsigned go, done;
  _Atomic int part;
  _Atomic size_t bytes;
};

static struct Shared* shared;
static char* buffer;  // `buffer`: each process has its own at one address
static const size_t most = 16 << 20;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((int)(core % sysconf(_SC_NPROCESSORS_ONLN)), &set);
  sched_setaffinity(0, sizeof set, &set);
}

static int by_size(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void await(_Atomic unsigned* what, unsigned turn) {
  while (atomic_load(what) < turn) continue;
}

static void sender(pid_t receiver) {
  pin(1);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (unsigned turn = 1;; turn += 2) {
    await(&shared->go, turn);
    int part = atomic_load(&shared->part);
    if (part == end) _exit(0);
    size_t bytes = atomic_load(&shared->bytes);
    memset(buffer, (int)turn, bytes);
    atomic_store(&shared->done, turn);
    await(&shared->go, turn + 1);
    if (part == half_over) {
      struct iovec here = {buffer + bytes / 2, bytes - bytes / 2}, there = here;
      if (process_vm_writev(receiver, &here, 1, &there, 1, 0) < 0) perror("copy");
    }
    atomic_store(&shared->done, turn + 1);
  }
}

static int can_read;  // 0: the kernel does not let us

static void receive(pid_t from, size_t bytes, enum Part part) {
  size_t mine = part == half_over ? bytes / 2 : bytes;
  struct iovec here = {buffer, mine}, there = here;
  if (mine && process_vm_readv(from, &here, 1, &there, 1, 0) < 0) can_read = 0;
}

static double measure(pid_t from, size_t bytes, enum Part part, int reps) {
  double times[most_reps];
  atomic_store(&shared->bytes, bytes);
  atomic_store(&shared->part, (int)part);
  for (int i = -1; i < reps; i++) {
    unsigned turn = atomic_fetch_add(&shared->go, 1) + 1;
    await(&shared->done, turn);
    double start = now_us();
    atomic_store(&shared->go, turn + 1);
    receive(from, bytes, part);
    await(&shared->done, turn + 1);
    if (i >= 0) times[i] = now_us() - start;
  }
  qsort(times, (size_t)reps, sizeof times[0], by_size);
  return times[reps / 2];
}

static void report(pid_t from, size_t bytes, int reps) {
  can_read = 1;
  double one = measure(from, bytes, only_write, reps);
  double two = measure(from, bytes, half_over, reps);
  if (!can_read) return;
  printf(
      "@@{\"measure\":\"copy\",\"size\":%zu,\"unit\":\"us\",\"samples\":[%.3f],\"extra\":{"
      "\"two_us\":%.3f,\"speedup\":%.3f}}\n",
      bytes, one, two, one / two);
}

int main(int argc, char** argv) {
  const char* sizes = "1048576";
  int reps = 15;
  for (int i = 1; i + 1 < argc; i++) {
    if (strcmp(argv[i], "--sizes") == 0) sizes = argv[i + 1];
    if (strcmp(argv[i], "--reps") == 0) reps = atoi(argv[i + 1]);
  }
  if (reps < 1 || reps > most_reps) return 2;
  buffer = malloc(most);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!buffer || shared == MAP_FAILED) return 1;
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // where a parent may not be written to
  pid_t self = getpid(), child = fork();
  if (child < 0) return 1;
  memset(buffer, 1, most);
  if (child == 0) sender(self);
  pin(0);
  int code = 0;
  for (const char* at = sizes; *at && code == 0;) {
    char* stop;
    size_t bytes = strtoull(at, &stop, 10);
    if (stop == at || bytes == 0 || bytes > most)
      code = 2;
    else
      report(child, bytes, reps);
    at = *stop == ',' ? stop + 1 : stop;
  }
  atomic_store(&shared->part, (int)end);
  atomic_fetch_add(&shared->go, 1);
  waitpid(child, NULL, 0);
  return code;
}
