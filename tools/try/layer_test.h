/* layer_test: a thread that calls MPI while the program computes, in the place of tests that the
   program does not call. It asks whether a message is there that nobody sends: so MPI makes
   progress, and no request of the program is touched. (It asks on MPI_COMM_WORLD: for one of this
   process alone some MPIs only look at what it sent itself.) Part of layer.c.

   Thread: the program's tells where stretches begin and end; the tester is one of its own, and
   calls nothing but MPI_Iprobe (under MPI_THREAD_MULTIPLE). Owner: the layer. Invariant: outside of
   stretches it sleeps. */
#ifndef HEADWAY_TRY_LAYER_TEST_H
#define HEADWAY_TRY_LAYER_TEST_H

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "layer_tables.h"

static struct {
  bool runs;
  pthread_t thread;
  int tag;       /* the largest one */
  uint32_t turn; /* odd in a stretch; written by the program's thread */
  bool stop;     /* with a change of `turn` */
} tester;

static uint32_t turn_now(void) { return __atomic_load_n(&tester.turn, __ATOMIC_ACQUIRE); }

static void sleep_while(uint32_t turn) {
  while (turn_now() == turn)
    syscall(SYS_futex, &tester.turn, FUTEX_WAIT_PRIVATE, turn, NULL, NULL, 0);
}

static void next_turn(void) {
  __atomic_store_n(&tester.turn, tester.turn + 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &tester.turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void test_in(uint32_t turn) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  for (int i = 0; i < try_plan.count; ++i) {
    const uint64_t ns = (uint64_t)at.tv_nsec + try_plan.period;
    at.tv_sec += (time_t)(ns / 1000000000u);
    at.tv_nsec = (long)(ns % 1000000000u);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
    if (turn_now() != turn) return;
    int flag;
    PMPI_Iprobe(MPI_ANY_SOURCE, tester.tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    ++try_counts.tests;
  }
}

static void* run_tester(void* unused) {
  (void)unused;
  try_depth = 1;
  prctl(PR_SET_TIMERSLACK, 1000);
  for (;;) {
    const uint32_t turn = turn_now();
    if (__atomic_load_n(&tester.stop, __ATOMIC_ACQUIRE)) return NULL;
    if (turn & 1) test_in(turn);
    sleep_while(turn);
  }
}

static void start_tester(void) {
  int provided = MPI_THREAD_SINGLE, found = 0, *most = NULL;
  PMPI_Query_thread(&provided);
  if (provided != MPI_THREAD_MULTIPLE) try_give_up("no-multiple");
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
  tester.tag = found ? *most : 32767;
  if (pthread_create(&tester.thread, NULL, run_tester, NULL) != 0)
    try_give_up("no thread can be made that tests");
  tester.runs = true;
}

static void stretch_ends(void) {
  if (tester.turn & 1) next_turn();
}

static void stretch_begins(void) {
  if (under_way == 0) return;
  ++try_counts.stretches;
  next_turn();
}

static void stop_tester(void) {
  if (!tester.runs) return;
  tester.runs = false;
  __atomic_store_n(&tester.stop, true, __ATOMIC_RELEASE);
  next_turn();
  pthread_join(tester.thread, NULL);
}

#endif
