/* tried: rank 0 sends a long message in each round and waits for that before its own work, while
   rank 1 works before it receives: tried FORM [ROUNDS [MS]]. Work is sleep, so that it takes as
   long on any machine. Rank 1 prints what it received, as a sum for each form.

   FORM: what rank 0 does with the buffer and how it waits.
     wait      MPI_Isend and MPI_Wait; the buffer is left alone until the round's last wait
     better    the same with that wait put off by hand
     all       two messages, which share a page, and one MPI_Waitall
     halves    the same, and both are written, one after the other
     twice     the same, one after the other, and a macro makes both waits of one line
     again     as twice, and both messages have one tag
     many      300 messages from one buffer and one MPI_Waitall
     send      MPI_Send
     ssend     MPI_Ssend
     tests     MPI_Send; rank 1 receives before its work, and waits behind it
     tested    the same, and rank 1 tests ten times while it works
     writes    as wait, but the buffer is written in the middle of the work
     reads     as writes, by read() of a file
     frees     as wait, in memory that is freed in the middle of the work
     static    as wait, in static memory, beside which other variables are written
     handles   the same, and MPI itself writes beside it
     receiving the same, and the answer is received beside it
     window    as wait, in a program that has a window
     ibarrier  as wait, while a non-blocking collective is under way
     stack     as wait, on the stack
     mapped    as wait, in a mapping of the program's own
     forks     as wait, and a child writes its copy of the buffer
     handler   as writes, and the program has a handler of SIGSEGV, which it needs
     thread    as wait, in a program with a second thread
     random    as wait; other bytes in each run
     gathers   as wait; broadcasts other sizes in each run
     prints    as wait; prints other words in each run
     times     as wait; prints how long it took
     stale     as wait; the buffer is written by a call that nobody watches (a raw system call) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 1 << 20, FIRST = SIZE / 2 + 100, MANY = 300, EACH = 64 << 10 };

static int rank;
static const char* form;
static double work_ms = 60;

static struct {
  volatile int before[20];
  char buffer[SIZE];
  volatile int behind[20];
  MPI_Request request;
  long answer;
} beside; /* on the same pages */

static int is(const char* name) { return strcmp(form, name) == 0; }

static void work(double ms) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  const long ns = t.tv_nsec + (long)(ms * 1e6);
  t.tv_sec += ns / 1000000000;
  t.tv_nsec = ns % 1000000000;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) continue;
}

static void fill(char* buffer, int round) {
  for (int i = 0; i < SIZE; ++i) buffer[i] = (char)(i * 7 + round * 13 + i / 4096);
}

/* ---- a handler that the program needs ---- */

static sigjmp_buf back;
static void on_fault(int number) {
  (void)number;
  siglongjmp(back, 1);
}

static int can_read(const volatile char* at) {
  if (sigsetjmp(back, 1)) return 0;
  return *at == 0 || 1;
}

/* ---- rank 0 ---- */

static void in_the_middle(char* buffer, int round) {
  if (is("writes")) {
    memset(buffer, 99, SIZE);
  } else if (is("handler")) {
    if (can_read((char*)16)) abort();
    buffer[SIZE / 2] = 99;
    if (can_read((char*)16)) abort();
  } else if (is("reads")) {
    const int file = open("/dev/zero", O_RDONLY);
    if (read(file, buffer, SIZE) != SIZE) perror("read");
    close(file);
  } else if (is("stale")) {
    const int file = open("/dev/zero", O_RDONLY);
    if (syscall(SYS_read, file, buffer, SIZE) != SIZE) printf("the read failed\n");
    close(file);
  } else if (is("static")) {
    beside.before[19] = beside.behind[0] = round;
  } else if (is("handles")) {
    MPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &beside.request);
    MPI_Wait(&beside.request, MPI_STATUS_IGNORE);
    buffer[0] = buffer[SIZE - 1] = 99;
  } else if (is("halves")) {
    buffer[0] = 99;
    buffer[FIRST + 1] = 99;
  } else if (is("frees")) {
    free(buffer);
    char* other = malloc(SIZE);
    memset(other, 98, SIZE);
    free(other);
  } else if (is("forks")) {
    const pid_t child = fork();
    if (child == 0) {
      memset(buffer, 97, SIZE);
      _exit(0);
    }
    int how = 1;
    waitpid(child, &how, 0);
    if (how != 0) printf("the child ended with %d\n", how);
  }
}

static void works(char* buffer, int round) {
  work(work_ms / 2);
  in_the_middle(buffer, round);
  work(work_ms / 2);
}

static void waits_first(char* buffer, int round, MPI_Request* answer) {
  MPI_Request request;
  MPI_Isend(buffer, SIZE, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE); /* wait */
  works(buffer, round);
  MPI_Waitall(1, answer, MPI_STATUSES_IGNORE); /* receives */
}

static void waits_last(char* buffer, int round, MPI_Request* answer) {
  MPI_Request requests[2];
  MPI_Isend(buffer, SIZE, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[1]);
  requests[0] = *answer;
  works(buffer, round);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void waits_for_two(char* buffer, int round, MPI_Request* answer) {
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Isend(buffer, FIRST, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(buffer + FIRST, SIZE - FIRST, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, statuses); /* all */
  if (requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL) abort();
  works(buffer, round);
  MPI_Waitall(1, answer, MPI_STATUSES_IGNORE);
}

#define TWICE(x) x x
#define BEGIN MPI_Isend(at, size, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request)
#define WAIT MPI_Wait(&request, MPI_STATUS_IGNORE)

static void waits_twice(char* buffer, int round, MPI_Request* answer) {
  MPI_Request request;
  const char* at = buffer;
  int size = FIRST, tag = 1;
  /* clang-format off */
  TWICE(BEGIN; WAIT; at += size; size = SIZE - FIRST; tag += is("twice");) /* twice */
  /* clang-format on */
  works(buffer, round);
  MPI_Waitall(1, answer, MPI_STATUSES_IGNORE);
}

static void waits_for_many(char* buffer, int round, MPI_Request* answer) {
  MPI_Request requests[MANY];
  for (int i = 0; i < MANY; ++i)
    MPI_Isend(buffer + i, EACH, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
  MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE); /* many */
  works(buffer, round);
  MPI_Waitall(1, answer, MPI_STATUSES_IGNORE);
}

static void sends(char* buffer, int round, MPI_Request* answer) {
  if (is("ssend")) {
    MPI_Ssend(buffer, SIZE, MPI_BYTE, 1, 1, MPI_COMM_WORLD); /* ssend */
  } else {
    MPI_Send(buffer, SIZE, MPI_BYTE, 1, 1, MPI_COMM_WORLD); /* send */
  }
  works(buffer, round);
  MPI_Wait(answer, MPI_STATUS_IGNORE);
}

static void send_on_the_stack(int round, MPI_Request* answer) {
  char buffer[SIZE];
  fill(buffer, round);
  waits_first(buffer, round, answer);
}

static void one_sender(char* buffer, int round, long* answer) {
  MPI_Request request, barrier = MPI_REQUEST_NULL;
  if (is("ibarrier")) MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  MPI_Irecv(answer, 1, MPI_LONG, 1, 3, MPI_COMM_WORLD, &request);
  if (is("stack")) {
    send_on_the_stack(round, &request);
    return;
  }
  if (is("frees")) buffer = malloc(SIZE);
  fill(buffer, round);
  if (is("random")) buffer[5] = (char)getpid(), buffer[6] = (char)(getpid() >> 8);
  if (is("better")) {
    waits_last(buffer, round, &request);
  } else if (is("all") || is("halves")) {
    waits_for_two(buffer, round, &request);
  } else if (is("twice") || is("again")) {
    waits_twice(buffer, round, &request);
  } else if (is("many")) {
    waits_for_many(buffer, round, &request);
  } else if (is("send") || is("ssend") || is("tests") || is("tested")) {
    sends(buffer, round, &request);
  } else {
    waits_first(buffer, round, &request);
  }
  MPI_Wait(&barrier, MPI_STATUS_IGNORE);
}

/* ---- rank 1 ---- */

static void receives_first(char* buffer) {
  MPI_Request request;
  MPI_Irecv(buffer, SIZE, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request); /* begins */
  if (is("tests")) {
    work(work_ms);
  } else {
    for (int i = 0, flag; i < 10; ++i) {
      work(work_ms / 11);
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
    work(work_ms / 11);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE); /* tests */
}

static long one_receiver(char* buffer, int round) {
  long sum = round;
  if (is("tests") || is("tested")) {
    receives_first(buffer);
  } else {
    work(work_ms);
  }
  if (is("tests") || is("tested")) {
  } else if (is("many")) {
    for (int i = 0; i < MANY; ++i)
      MPI_Recv(buffer + i * (SIZE - EACH) / (MANY - 1), EACH, MPI_BYTE, 0, i, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  } else if (is("all") || is("halves") || is("twice") || is("again")) {
    MPI_Recv(buffer, FIRST, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(buffer + FIRST, SIZE - FIRST, MPI_BYTE, 0, is("again") ? 1 : 2, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(buffer, SIZE, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < SIZE; ++i) sum = sum * 31 + buffer[i];
  if (is("random")) sum = 0;
  if (is("ibarrier")) {
    MPI_Request barrier;
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
  }
  MPI_Send(&sum, 1, MPI_LONG, 0, 3, MPI_COMM_WORLD);
  return sum;
}

static void* sleeps(void* unused) {
  sleep(1000);
  return unused;
}

static char* memory(void) {
  if (is("static") || is("handles") || is("receiving")) return beside.buffer;
  if (!is("mapped")) return malloc(SIZE);
  return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int argc, char** argv) {
  form = argc > 1 ? argv[1] : "wait";
  const int rounds = argc > 2 ? atoi(argv[2]) : 8;
  if (argc > 3) work_ms = atof(argv[3]);
  pthread_t thread;
  if (is("handler")) signal(SIGSEGV, on_fault);
  if (is("thread")) pthread_create(&thread, NULL, sleeps, NULL);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* buffer = memory();
  long sum = 0, *answer = is("receiving") ? &beside.answer : malloc(sizeof *answer);
  MPI_Win window;
  if (is("window")) MPI_Win_create(&rank, sizeof rank, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  *answer = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int round = 0; round < rounds; ++round) {
    if (rank == 0) {
      one_sender(buffer, round, answer);
    } else {
      sum = sum * 7 + one_receiver(buffer, round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  const double seconds = MPI_Wtime() - begin;
  if (is("gathers")) {
    int size = (int)getpid() % 30000 + 1;
    MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(buffer, size, MPI_CHAR, 0, MPI_COMM_WORLD);
  }
  if (rank == 1) printf("received %ld\n", sum);
  if (rank == 0) printf("answer %ld\n", *answer);
  if (is("prints") && rank == 0) {
    srand((unsigned)getpid());
    static const char* const words[] = {"red", "green", "blue", "grey", "white", "black", "brown"};
    printf("%s", words[(rand() / 7) % 7]);
    for (int i = 0; i < 20; ++i) printf(" %s", words[(rand() / 7) % 7]);
    printf("\n");
  }
  if ((is("times") || is("better") || is("wait") || is("tests") || is("tested")) && rank == 0)
    printf("seconds %.6f\n", seconds);
  if (is("window")) MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
