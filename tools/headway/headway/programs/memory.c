// What it takes in memory that sends do not wait: rank 0 sends one message of --size bytes to each
// rank from --from on, while none of them is in MPI. Told are the memory of a process before, what
// all processes together, and with --sockets 1 the system's sockets, hold of the messages, and how
// many sends were over. Times are the machine's one clock: the ranks sleep meanwhile, so that many
// of them fit on few cores.
#include "common.h"

enum { rounds = 3 };  // what an MPI has taken for messages it may keep for the next: all count
static const double sends_us = 0.3e6;  // rank 0 tests its sends so long
static const double look_us = 0.2e6;   // then all look at their memory

// Anonymous and shared memory of this process, bytes; what several have mapped is divided among
// them. Programs and libraries do not count: they are files.
static double memory_of_process(void) {
  FILE* f = fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  long sum = 0, kb;
  if (!f) fail("cannot read /proc/self/smaps_rollup");
  while (fgets(line, sizeof line, f))
    if ((strncmp(line, "Pss_Anon:", 9) == 0 || strncmp(line, "Pss_Shmem:", 10) == 0) &&
        sscanf(strchr(line, ':') + 1, "%ld", &kb) == 1)
      sum += kb;
  fclose(f);
  return (double)sum * 1024;
}

// What all sockets of this machine hold, bytes: those of simulated hosts, too.
static double memory_of_sockets(void) {
  FILE* f = fopen("/proc/net/sockstat", "r");
  char line[256];
  long pages = 0;
  while (f && fgets(line, sizeof line, f)) {
    const char* at = strncmp(line, "TCP:", 4) == 0 ? strstr(line, " mem ") : NULL;
    if (at) pages = atol(at + 5);
  }
  if (f) fclose(f);
  return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void sleep_until(double us) {
  double left = us - now_us();
  if (left <= 0) return;
  struct timespec t = {(time_t)(left / 1e6),
                       (long)((left - (double)(long)(left / 1e6) * 1e6) * 1e3)};
  nanosleep(&t, NULL);
}

// Every pair that will be used has spoken before, so that connections do not count as messages.
static void acquaint(int rank, int ranks, int from) {
  char byte = 0;
  for (int i = from; i < ranks; i++) {
    if (rank == 0) MPI_Send(&byte, 1, MPI_CHAR, i, 1, MPI_COMM_WORLD);
    if (rank == i) MPI_Recv(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == i) MPI_Send(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&byte, 1, MPI_CHAR, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static int count_done(MPI_Request* requests, int count, double until) {
  int done = 0;
  while (done < count && now_us() < until)
    for (int i = 0; i < count; i++) {
      int flag = 0;
      if (requests[i] != MPI_REQUEST_NULL) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
      done += flag;
    }
  return done;
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  size_t size = (size_t)arg_number(argc, argv, "--size", 65536);
  int from = (int)arg_number(argc, argv, "--from", 1), peers = ranks - from, done = 0;
  if (from < 1 || peers < 1) fail("--from names no peer");
  char* buffer = rank == 0 || rank >= from ? new_buffer(size) : NULL;
  MPI_Request* requests = (MPI_Request*)new_buffer((size_t)peers * sizeof *requests);
  acquaint(rank, ranks, from);
  MPI_Barrier(MPI_COMM_WORLD);
  double before = memory_of_process(), held[rounds], all[rounds], in_sockets[rounds], standing,
         most;
  int counts = rank == 0 && arg_number(argc, argv, "--sockets", 0) > 0;
  for (int r = 0; r < rounds; r++) {
    double sockets = counts ? memory_of_sockets() : 0, go = now_us() + 0.1e6, start;
    MPI_Allreduce(&go, &start, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    sleep_until(start);
    if (rank == 0) {
      for (int i = 0; i < peers; i++)
        MPI_Isend(buffer, (int)size, MPI_CHAR, from + i, 2, MPI_COMM_WORLD, &requests[i]);
      done = count_done(requests, peers, start + sends_us);
    }
    sleep_until(start + sends_us + look_us);
    in_sockets[r] = counts ? memory_of_sockets() - sockets : 0;
    held[r] = memory_of_process() - before + in_sockets[r];
    sleep_until(start + sends_us + 2 * look_us);
    if (rank >= from)
      MPI_Recv(buffer, (int)size, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) MPI_Waitall(peers, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Reduce(held, all, rounds, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&before, &standing, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&before, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf(
        "@@{\"measure\":\"memory\",\"size\":%zu,\"unit\":\"B\",\"samples\":[%.0f,%.0f,%.0f],"
        "\"extra\":{"
        "\"ranks\":%d,\"peers\":%d,\"done\":%d,\"standing\":%.0f,\"most\":%.0f,\"sockets\":%.0f}}"
        "\n",
        size, all[0], all[1], all[2], ranks, peers, done, standing / ranks, most,
        median(in_sockets, rounds));
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
