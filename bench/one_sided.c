// One-sided operations of rank 0 on rank 1's memory, in plain memory (MPI_Win_create) and in the
// window's own (MPI_Win_allocate): microseconds for an operation and its flush while the target is
// in MPI, and while it computes; epochs; partitions that are there when a receiver comes back from
// its work. Any MPI of the standard, by hand, two ranks:
//   mpicc -O2 bench/one_sided.c -o one_sided && mpiexec -n 2 ./one_sided [ROUNDS]
// The median of the rounds, and the least and the most.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  most_rounds = 101,
  most_bytes = 1 << 20,
  work_us = 30000,
  parts = 8,
  part_bytes = 128 << 10
};
static int rank, rounds;
static MPI_Win win;
static char here[most_bytes], there[most_bytes], parted[parts * part_bytes];
static double times[most_rounds];

static int by_time(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void tell(const char* memory, const char* name, int n) {
  if (rank != 0) return;
  qsort(times, (size_t)n, sizeof *times, by_time);
  printf("%-9s %-34s %10.2f us (%.2f to %.2f)\n", memory, name, times[n / 2], times[0],
         times[n - 1]);
  fflush(stdout);
}

static void work(double us) {
  const double start = MPI_Wtime();
  while ((MPI_Wtime() - start) * 1e6 < us) continue;
}

enum { put, get, add, fetch, swap, kinds };
static const char* const names[kinds] = {"put", "get", "accumulate", "fetch_and_op",
                                         "compare_and_swap"};

static void operate(int kind, int bytes) {
  static double one = 1, result[2];
  static long number = 1, expected, found;
  switch (kind) {
    case put: MPI_Put(here, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win); break;
    case get: MPI_Get(here, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win); break;
    case add:
      MPI_Accumulate(bytes == 8 ? (void*)&one : here, bytes / 8, MPI_DOUBLE, 1, 0, bytes / 8,
                     MPI_DOUBLE, MPI_SUM, win);
      break;
    case fetch: MPI_Fetch_and_op(&one, result, MPI_DOUBLE, 1, 0, MPI_SUM, win); break;
    default: MPI_Compare_and_swap(&number, &expected, &found, MPI_LONG, 1, 0, win);
  }
  MPI_Win_flush(1, win);
}

// Of one operation in a round while the target computes, the median of those that fit.
static double beside_work(int kind, int bytes) {
  static double each[200];
  const double start = MPI_Wtime();
  int n = 0;
  for (double now = start, before; n < 200 && (now - start) * 1e6 < work_us / 2;
       each[n++] = (now - before) * 1e6) {
    before = now;
    operate(kind, bytes);
    now = MPI_Wtime();
  }
  qsort(each, (size_t)n, sizeof *each, by_time);
  return each[n / 2];
}

// The target waits in MPI, or computes so long that whoever waits for it sees that.
static void operations(const char* memory, int kind, int bytes, int computes) {
  char name[64];
  const int calls = bytes > 8192 ? 50 : 500, n = computes ? 7 : rounds;
  MPI_Win_lock_all(0, win);
  for (int round = -1; round < n; round++) {  // the first one warms up
    double took = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && computes) {
      work(work_us / 10);
      took = beside_work(kind, bytes);
    } else if (rank == 0) {
      const double start = MPI_Wtime();
      for (int i = 0; i < calls; i++) operate(kind, bytes);
      took = (MPI_Wtime() - start) * 1e6 / calls;
    } else if (computes) {
      work(work_us);
    }
    if (round >= 0) times[round] = took;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_unlock_all(win);
  snprintf(name, sizeof name, "%s %d B%s", names[kind], bytes, computes ? ", target computes" : "");
  tell(memory, name, n);
}

static void epochs(const char* memory) {
  const int calls = 300;
  MPI_Group all, other;
  const int partner = 1 - rank;
  MPI_Win_get_group(win, &all);
  MPI_Group_incl(all, 1, &partner, &other);
  for (int way = 0; way < 3; way++) {
    static const char* const ways[] = {"lock, put 8 B, unlock", "fence with a put",
                                       "post, start, put, complete, wait"};
    if (way == 1) MPI_Win_fence(0, win);
    for (int round = -1; round < rounds; round++) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      for (int i = 0; i < calls; i++) {
        if (way == 0) {
          if (rank != 0) break;
          MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
          MPI_Put(here, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
          MPI_Win_unlock(1, win);
        } else if (way == 1) {
          if (rank == 0) MPI_Put(here, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
          MPI_Win_fence(0, win);
        } else if (rank == 0) {
          MPI_Win_start(other, 0, win);
          MPI_Put(here, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
          MPI_Win_complete(win);
        } else {
          MPI_Win_post(other, 0, win);
          MPI_Win_wait(win);
        }
      }
      if (round >= 0) times[round] = (MPI_Wtime() - start) * 1e6 / calls;
    }
    if (way == 1) MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Barrier(MPI_COMM_WORLD);
    tell(memory, ways[way], rounds);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&other);
}

// Eight partitions, 2 ms of work before each; the receiver computes until all must have been sent.
static void partitions(void) {
  MPI_Request request;
  const double work_all = 2000.0 * parts;
  if (rank == 0) {
    MPI_Psend_init(parted, parts, part_bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request);
  } else {
    MPI_Precv_init(parted, parts, part_bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request);
  }
  int early = 0;
  for (int round = -1; round < 7; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&request);
    double waited = 0;
    if (rank == 0) {
      for (int part = 0; part < parts; part++) {
        work(2000);
        memset(parted + part * part_bytes, round + 2, part_bytes);
        MPI_Pready(part, request);
      }
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      int flag = 0;
      MPI_Parrived(request, parts - 1, &flag);
      early += flag;
      work(work_all * 1.2);
      const double start = MPI_Wtime();
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      waited = (MPI_Wtime() - start) * 1e6;
      MPI_Send(&waited, 1, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD);
    }
    if (rank == 0) {
      MPI_Recv(&waited, 1, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (round >= 0) times[round] = waited;
    }
  }
  MPI_Request_free(&request);
  tell("", "8 partitions, receiver computes", 7);
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &early, &early, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && early) printf("MPI_Parrived said yes early %d times of 8\n", early);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  rounds = argc > 1 ? atoi(argv[1]) : 11;
  if (rounds < 1 || rounds > most_rounds) rounds = 11;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int own = 0; own < 2; own++) {
    const char* const memory = own ? "allocated" : "plain";
    void* at;
    if (own) {
      MPI_Win_allocate(most_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &at, &win);
    } else {
      MPI_Win_create(there, most_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    for (int computes = 0; computes < 2; computes++) {
      for (int kind = 0; kind < kinds; kind++) operations(memory, kind, 8, computes);
    }
    for (int kind = put; kind <= add; kind++) {
      operations(memory, kind, 4 << 10, 0);
      operations(memory, kind, 64 << 10, 0);
      operations(memory, kind, most_bytes, 0);
    }
    epochs(memory);
    MPI_Win_free(&win);
  }
  partitions();
  MPI_Finalize();
  return 0;
}
