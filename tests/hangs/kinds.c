/* kinds: jobs that hang, each in its own way, and jobs that only look as if they did. `kinds
   dead-NAME [SEED]` never ends; `kinds live-NAME [SEED]` waits for something slow, six seconds (or
   KINDS_SLOW), and ends with 0. Sizes, tags and who plays which part follow from the seed: two
   seeds of three draw messages whose receives may be released early. Three ranks or more: ranks
   beyond those that the kind needs compute. Who hangs says when: `@RANK SECONDS` by
   CLOCK_MONOTONIC, right before its last call. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONG = 8 << 20 };
static double slow_s = 6;         /* KINDS_SLOW */
static int me, size, me_in_world; /* `me` after the seed has turned the ranks */
static int tag, count;            /* `count` bytes are sent, and there is room for as many */
static char *out, *in;
static MPI_Comm comm; /* the ranks in the seed's order */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static void compute(double seconds) {
  const double end = now() + seconds;
  while (now() < end) {
  }
}
static void compute_for_ever(void) {
  for (;;) compute(1);
}
static void rest(double seconds) {
  const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

static void last_call(void) {
  printf("@%d %.6f\n", me_in_world, now());
  fflush(stdout);
}

static void send_to(int to) { MPI_Send(out, count, MPI_CHAR, to, tag, comm); }
static void send_long(int to) { MPI_Send(out, LONG, MPI_CHAR, to, tag, comm); }
static void receive_from(int from) {
  MPI_Recv(in, count, MPI_CHAR, from, tag, comm, MPI_STATUS_IGNORE);
}
static void receive_long(int from) {
  MPI_Recv(in, LONG, MPI_CHAR, from, tag, comm, MPI_STATUS_IGNORE);
}
/* ---- dead: ranks 0 and 1, and 2 where a circle of three is needed
 * -------------------------------------- */
static int pair(void) {
  if (me > 1) compute_for_ever();
  last_call();
  return 1 - me;
}
static void dead_ssends(void) {
  const int other = pair();
  MPI_Ssend(out, count, MPI_CHAR, other, tag, comm);
  receive_from(other);
}
static void dead_sends(void) { /* too long to be copied */
  const int other = pair();
  send_long(other);
  receive_long(other);
}
static void dead_receives(void) {
  const int other = pair();
  receive_from(other);
  send_to(other);
}
static void dead_ring(void) {
  last_call();
  receive_from((me + size - 1) % size);
  send_to((me + 1) % size);
}
static void dead_three(void) {
  if (me > 2) compute_for_ever();
  last_call();
  MPI_Ssend(out, count, MPI_CHAR, (me + 1) % 3, tag, comm);
  receive_from((me + 2) % 3);
}
static void dead_tags(void) {
  const int other = pair();
  if (me == 0) MPI_Ssend(out, count, MPI_CHAR, other, tag, comm);
  if (me == 1) MPI_Recv(in, count, MPI_CHAR, other, tag + 1, comm, MPI_STATUS_IGNORE);
}
static void dead_communicators(void) {
  MPI_Comm twin;
  MPI_Comm_dup(comm, &twin);
  const int other = pair();
  if (me == 0) MPI_Ssend(out, count, MPI_CHAR, other, tag, comm);
  if (me == 1) MPI_Recv(in, count, MPI_CHAR, other, tag, twin, MPI_STATUS_IGNORE);
}
static void dead_missing_barrier(void) {
  last_call();
  if (me == 0) receive_from(1);
  MPI_Barrier(comm);
}
static void dead_bcast(void) { /* its root waits for one that waits for it */
  last_call();
  if (me == 0) receive_from(1);
  MPI_Bcast(out, count, MPI_CHAR, 0, comm);
}
static void dead_two_barriers(void) {
  MPI_Comm twin;
  MPI_Comm_dup(comm, &twin);
  last_call();
  MPI_Barrier(me == 0 ? comm : twin);
}
static void dead_waitall(void) {
  const int other = pair();
  MPI_Request both[2];
  MPI_Irecv(in, count, MPI_CHAR, other, tag, comm, &both[0]);
  MPI_Irecv(in + count, count, MPI_CHAR, other, tag + 1, comm, &both[1]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}
static void dead_waitany(void) {
  MPI_Request some[2];
  int index;
  last_call();
  MPI_Irecv(in, count, MPI_CHAR, (me + 1) % size, tag, comm, &some[0]);
  MPI_Irecv(in + count, count, MPI_CHAR, (me + 2) % size, tag, comm, &some[1]);
  MPI_Waitany(2, some, &index, MPI_STATUS_IGNORE);
}
static void dead_any_source(void) {
  last_call();
  receive_from(MPI_ANY_SOURCE);
}
static void dead_probes(void) {
  MPI_Status status;
  MPI_Probe(pair(), tag, comm, &status);
}
static void dead_finalize(void) {
  last_call();
  if (me == 0) receive_from(1); /* all others are done */
}
static void dead_issend(void) {
  MPI_Request request;
  last_call();
  if (me == 0) {
    MPI_Issend(out, count, MPI_CHAR, 1, tag, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(comm);
  if (me == 1) receive_from(0);
}
static void dead_self(void) {
  if (me > 0) compute_for_ever();
  last_call();
  receive_from(0);
}
static void dead_ibarrier(void) {
  MPI_Request request;
  last_call();
  if (me == 1) receive_from(0);
  MPI_Ibarrier(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void dead_sendrecv(void) {
  if (me > 2) compute_for_ever();
  last_call();
  MPI_Sendrecv(out, count, MPI_CHAR, (me + 1) % 3, tag, in, count, MPI_CHAR, (me + 1) % 3, tag,
               comm, MPI_STATUS_IGNORE);
}
static void dead_persistent(void) {
  MPI_Request request;
  MPI_Recv_init(in, count, MPI_CHAR, pair(), tag, comm, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void touch(void) { /* of a receive that was released early, its data; from its end */
  volatile char* data = in;
  for (int at = count - 1; at >= 0; at -= 1024) data[at] += 1;
}
static void dead_touch(void) {
  const int other = pair();
  receive_from(other);
  touch();
  send_to(other);
}
static void dead_behind(void) { /* each computes with what it has not got */
  const int other = pair();
  receive_from(other);
  if (me == 0) compute_for_ever();
  send_to(other);
}
static void dead_chain(void) { /* all wait for rank 0, which waits for the last one */
  last_call();
  receive_from((me + size - 1) % size == size - 1 ? size - 1 : 0);
}

/* ---- live
 * ------------------------------------------------------------------------------------------------
 */
static void live_computes(void) {
  if (me == 0) compute(slow_s);
  if (me == 0) send_to(1);
  if (me == 1) receive_from(0);
}
static void live_sleeps(void) {
  if (me == 0) rest(slow_s);
  if (me == 0) send_to(1);
  if (me == 1) receive_from(0);
}
static void live_tests(void) { /* rank 1 looks by itself, rank 0 waits for it */
  MPI_Request request;
  int flag = 0;
  if (me == 2) rest(slow_s);
  if (me == 2) send_to(1);
  if (me == 1) {
    MPI_Irecv(in, count, MPI_CHAR, 2, tag, comm, &request);
    while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    send_to(0);
  }
  if (me == 0) receive_from(1);
}
static void live_naps_between_tests(void) {
  MPI_Request request;
  int flag = 0;
  if (me == 2) rest(slow_s);
  if (me == 2) send_to(1);
  if (me == 1) {
    MPI_Irecv(in, count, MPI_CHAR, 2, tag, comm, &request);
    for (; !flag; rest(0.01)) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    send_to(0);
  }
  if (me == 0) receive_from(1);
}
static void live_iprobes(void) {
  int flag = 0;
  const double end = now() + slow_s;
  if (me == 1) {
    while (now() < end)
      MPI_Iprobe(0, tag + 5, comm, &flag, MPI_STATUS_IGNORE); /* until its time is over */
    send_to(0);
  }
  if (me == 0) receive_from(1);
}
static void live_file(void) { /* waits for what another rank leaves on the disk */
  char name[256];
  const char* folder = getenv("TMPDIR");
  snprintf(name, sizeof name, "%s/kinds-%d", folder ? folder : "/tmp", (int)getppid());
  if (me == 1) {
    rest(slow_s);
    fclose(fopen(name, "w"));
  }
  if (me == 0) {
    while (access(name, F_OK) != 0) rest(0.05);
    unlink(name);
    send_to(2);
  }
  if (me == 2) receive_from(0);
}
static void* sends_late(void* unused) {
  rest(slow_s);
  send_to(1);
  return unused;
}
static void live_thread(void) { /* another thread of a rank that waits will send */
  pthread_t thread;
  if (me == 0) {
    pthread_create(&thread, NULL, sends_late, NULL);
    receive_from(1);
    pthread_join(thread, NULL);
  }
  if (me == 1) receive_from(0);
  if (me == 1) send_to(0);
}
static void* computes_late(void* done) {
  compute(slow_s);
  *(volatile int*)done = 1;
  return NULL;
}
static void live_thread_outside(void) { /* the one that will send waits for a thread without MPI */
  pthread_t thread;
  volatile int done = 0;
  if (me == 0) {
    pthread_create(&thread, NULL, computes_late, (void*)&done);
    pthread_join(thread, NULL);
    send_to(1);
  }
  if (me == 1) receive_from(0);
}
static volatile sig_atomic_t rung;
static void ring(int number) { rung = number; }
static void live_timer(void) { /* a timer goes off all the time */
  struct sigaction action = {.sa_handler = ring, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  if (me == 0) compute(slow_s);
  if (me == 0) send_to(1);
  if (me == 1) receive_from(0);
  setitimer(ITIMER_REAL, &never, NULL);
}
static void live_signal(void) { /* sleeps until a signal */
  signal(SIGALRM, ring);
  if (me == 0) {
    alarm((unsigned)slow_s);
    while (!rung) pause();
    send_to(1);
  }
  if (me == 1) receive_from(0);
}
static void live_stopped(void) { /* is stopped, and goes on */
  if (me == 0) {
    const pid_t self = getpid();
    if (fork() == 0) {
      rest(slow_s);
      kill(self, SIGCONT);
      _exit(0);
    }
    raise(SIGSTOP);
    send_to(1);
  }
  if (me == 1) receive_from(0);
}
static void live_child(void) {
  char words[64];
  snprintf(words, sizeof words, "sleep %g", slow_s);
  if (me == 0 && system(words) == 0) send_to(1);
  if (me == 1) receive_from(0);
}
static void live_pipe(void) {
  int ends[2];
  char letter;
  if (me == 0 && pipe(ends) == 0) {
    if (fork() == 0) {
      rest(slow_s);
      _exit(write(ends[1], "x", 1) != 1);
    }
    if (read(ends[0], &letter, 1) == 1) send_to(1);
  }
  if (me == 1) receive_from(0);
}
static void live_barrier(void) {
  if (me == size - 1) compute(slow_s);
  MPI_Barrier(comm);
}
static void live_ibarrier(void) {
  MPI_Request request;
  int flag = 0;
  if (me == 0) rest(slow_s);
  MPI_Ibarrier(comm, &request);
  for (; !flag; rest(0.001)) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}
static void live_waitany(void) {
  MPI_Request some[2];
  int index;
  if (me == 2) rest(slow_s);
  if (me > 0 && me < 3) send_to(0);
  if (me == 0) {
    MPI_Irecv(in, count, MPI_CHAR, 1, tag, comm, &some[0]);
    MPI_Irecv(in + count, count, MPI_CHAR, 2, tag, comm, &some[1]);
    MPI_Waitany(2, some, &index, MPI_STATUS_IGNORE);
    MPI_Waitany(2, some, &index, MPI_STATUS_IGNORE);
  }
}
static void live_chain(void) { /* each waits for the one before it, and the first is slow */
  if (me == 0) rest(slow_s);
  if (me > 0) receive_from(me - 1);
  if (me + 1 < size) send_to(me + 1);
}
static void live_any_source(void) {
  if (me == 0) {
    for (int i = 1; i < size; ++i) receive_from(MPI_ANY_SOURCE);
  } else {
    if (me == size - 1) rest(slow_s);
    send_to(0);
  }
}
static void live_slow_receiver(void) {
  if (me == 0) send_long(1);
  if (me == 1) rest(slow_s);
  if (me == 1) receive_long(0);
}
static void live_finalize(void) {
  if (me == 0) compute(slow_s);
}
static void live_pingpong(void) { /* nothing is slow */
  const double end = now() + slow_s;
  int go_on = 1;
  while (go_on) {
    if (me == 0) go_on = now() < end;
    MPI_Bcast(&go_on, 1, MPI_INT, 0, comm);
    if (me == 0) send_to(1);
    if (me == 1) receive_from(0);
  }
}
static void live_touch(void) { /* the data are slow, and held is who touches them */
  if (me == 0) rest(slow_s);
  if (me == 0) send_to(1);
  if (me == 1) {
    receive_from(0);
    touch();
    send_to(2);
  }
  if (me == 2) receive_from(1);
}
static void live_begun(void) { /* what rank 1 waits for was begun before rank 0 was held */
  MPI_Request request;
  if (me == 0) {
    MPI_Isend(out, LONG, MPI_CHAR, 1, tag, comm, &request);
    receive_from(1);
    touch();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (me == 1) {
    rest(slow_s);
    receive_long(0);
    send_to(0);
  }
}
static sigjmp_buf away;
static volatile sig_atomic_t outside; /* of MPI, which nobody may jump out of */
static void jump(int number) {
  if (!outside) return;
  outside = 0;
  siglongjmp(away, number);
}
static void live_jump(void) { /* a timer takes it away from the data that it waits for */
  const struct itimerval often = {{0, 200000}, {0, 200000}}, never = {{0, 0}, {0, 0}};
  if (me == 0) rest(slow_s);
  if (me == 0) send_to(1);
  if (me == 1) {
    struct sigaction action = {.sa_handler = jump, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    receive_from(0);
    if (sigsetjmp(away, 1) == 0) {
      outside = 1;
      touch();
      outside = 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    compute(slow_s);
  }
}
static void* sends_to_one(void* unused) {
  rest(slow_s);
  send_to(1);
  return unused;
}
static void live_helper(void) { /* a thread of a rank sends what makes its own message come */
  pthread_t thread;
  if (me == 0) {
    pthread_create(&thread, NULL, sends_to_one, NULL);
    receive_from(1);
    touch();
    pthread_join(thread, NULL);
  }
  if (me == 1) {
    receive_from(0);
    touch();
    send_to(0);
  }
}
static void live_before(void) {} /* before MPI_Init, see main */

static const struct Kind {
  const char* name;
  void (*run)(void);
} kinds[] = {
#define DEAD(name) {"dead-" #name, dead_##name}
#define LIVE(name) {"live-" #name, live_##name}
    DEAD(ssends),
    DEAD(sends),
    DEAD(receives),
    DEAD(ring),
    DEAD(three),
    DEAD(tags),
    DEAD(communicators),
    DEAD(missing_barrier),
    DEAD(bcast),
    DEAD(two_barriers),
    DEAD(waitall),
    DEAD(waitany),
    DEAD(any_source),
    DEAD(probes),
    DEAD(finalize),
    DEAD(issend),
    DEAD(self),
    DEAD(ibarrier),
    DEAD(sendrecv),
    DEAD(persistent),
    DEAD(chain),
    DEAD(touch),
    DEAD(behind),
    LIVE(computes),
    LIVE(sleeps),
    LIVE(tests),
    LIVE(naps_between_tests),
    LIVE(iprobes),
    LIVE(file),
    LIVE(thread),
    LIVE(thread_outside),
    LIVE(timer),
    LIVE(signal),
    LIVE(stopped),
    LIVE(child),
    LIVE(pipe),
    LIVE(barrier),
    LIVE(ibarrier),
    LIVE(waitany),
    LIVE(chain),
    LIVE(any_source),
    LIVE(slow_receiver),
    LIVE(finalize),
    LIVE(pingpong),
    LIVE(touch),
    LIVE(begun),
    LIVE(jump),
    LIVE(helper),
    LIVE(before)};

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "";
  const unsigned seed = argc > 2 ? (unsigned)atol(argv[2]) : 1;
  if (!strcmp(name, "list")) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) printf("%s\n", kinds[i].name);
    return 0;
  }
  const char* slow = getenv("KINDS_SLOW");
  if (slow) slow_s = atof(slow);
  const char* number = getenv("PMI_RANK");
  if (!number) number = getenv("OMPI_COMM_WORLD_RANK");
  if (!strcmp(name, "live-before") && number && atoi(number) == 1) rest(slow_s);
  int provided;
  const int several = !strcmp(name, "live-thread") || !strcmp(name, "live-helper");
  const int threads = several ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, threads, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &me_in_world);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  out = calloc(LONG, 2);
  in = calloc(LONG, 2);
  tag = (int)(seed * 7919u % 1000u);
  const unsigned drawn = seed * 2654435761u >> 16;
  count = seed % 3 ? 1 << (14 + drawn % 8) : 1 << drawn % 12; /* 16 KB to 2 MB, or 1 B to 2 KB */
  const int turn = (int)(seed % (unsigned)size);
  MPI_Comm_split(MPI_COMM_WORLD, 0, (me_in_world + turn) % size, &comm);
  MPI_Comm_rank(comm, &me);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    if (strcmp(name, kinds[i].name) != 0) continue;
    kinds[i].run();
    MPI_Finalize();
    return 0;
  }
  fprintf(stderr, "kinds: no kind %s\n", name);
  MPI_Abort(MPI_COMM_WORLD, 2);
  return 2;
}
