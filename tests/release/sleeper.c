/* What a program does between a receive and the first look at its data: it sleeps, allocates, reads
 * clocks or prints, for PARTS times 5 ms. Rank 1 receives, rank 0 sends LATE ms after both began.
 *   sleeper BYTES LATE PARTS ROUNDS none|sleep|allocate|clock|print
 * Rank 1 prints "process PID", then for each round the milliseconds until all has been read. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void spin(double ms) {
  const double end = now_ms() + ms;
  while (now_ms() < end) {
  }
}

static void work(const char* deed, int part) {
  struct timespec time = {0, 5000000};
  if (strcmp(deed, "sleep") == 0) {
    nanosleep(&time, NULL);
    return;
  }
  if (strcmp(deed, "allocate") == 0) {
    char* block = malloc(600000); /* a mapping of its own, which goes at once */
    memset(block, part, 600000);
    free(block);
  } else if (strcmp(deed, "clock") == 0) {
    for (int i = 0; i < 20; ++i) syscall(SYS_clock_gettime, CLOCK_REALTIME, &time);
  } else if (strcmp(deed, "print") == 0) {
    fprintf(stderr, "part %d\n", part);
  }
  spin(5);
}

/* A debugger stops here: `data` is received, and perhaps not there yet. */
int round_now = 0;
__attribute__((noinline)) void after_receive(const unsigned char* data) {
  __asm__ volatile("" : : "r"(data) : "memory");
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 6) MPI_Abort(MPI_COMM_WORLD, 2);
  const int bytes = atoi(argv[1]), late = atoi(argv[2]), parts = atoi(argv[3]);
  const int rounds = atoi(argv[4]);
  unsigned char* data = malloc((size_t)bytes);
  if (rank == 1) {
    printf("process %d\n", (int)getpid());
    fflush(stdout);
  }
  for (int round = 0; round < rounds; ++round) {
    memset(data, rank == 0 ? round + 1 : 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      usleep((useconds_t)late * 1000);
      MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
      const double start = now_ms();
      MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      round_now = round;
      after_receive(data);
      for (int part = 0; part < parts; ++part) work(argv[5], part);
      int wrong = 0;
      for (int i = 0; i < bytes; ++i) wrong += data[i] != (unsigned char)(round + 1);
      if (wrong) {
        fprintf(stderr, "round %d: %d bytes are wrong\n", round, wrong);
        MPI_Abort(MPI_COMM_WORLD, 3);
      }
      printf("ms %.1f\n", now_ms() - start);
    }
  }
  MPI_Finalize();
  if (rank == 1) printf("ok\n");
  return 0;
}
