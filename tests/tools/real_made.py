"""C programs with one known fault each, drawn by a seed: what to advise, and the same program with that change.

Computation lasts until a clock says so; with -DSTEPS_PER_US=N it is an amount of steps, as a program's own is: what takes its core
meanwhile, as a thread of an MPI that copies a message, makes it longer.

The change is a matter of macros: compiled without any the program has its fault; with -DBETTER, or -DTESTS=N where the
change is tests, it has not. It prints the seconds of its loop. With two ranks computation spins; with more it sleeps, so that they have cores
to wait on.
"""

import random
from dataclasses import dataclass

HEAD = """/* Seed %(seed)d, fault: %(name)s. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef TESTS
#define TESTS 0
#endif
enum { SIZE = %(size)d, ROUNDS = %(rounds)d, SLEEPS = %(sleeps)d };
static int rank, ranks;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static volatile double sum;

static void work(double us) {
  if (SLEEPS) {
    struct timespec t = {0, (long)(us * 1e3)};
    nanosleep(&t, NULL);
    return;
  }
#ifdef STEPS_PER_US
  double x = sum;
  for (long steps = (long)(us * STEPS_PER_US); steps > 0; --steps) x = x * 0.5 + 1;
  sum = x;
#else
  double end = now() + 1e-6 * us;
  while (now() < end) continue;
#endif
}

/* Work with tests in it. */
static void tested(double us, MPI_Request* requests, int count) {
  int i, flag;
  for (i = 0; i < TESTS; ++i) {
    work(us / (TESTS + 1));
    MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
  }
  work(us / (TESTS + 1));
}

static char* memory(size_t bytes) {
  char* p = malloc(bytes);
  memset(p, 1, bytes);
  return p;
}
"""

# How many of work()'s steps an undisturbed core makes in a us.
PACE = """
#include <stdio.h>
#include <time.h>
static volatile double sum;
int main(void) {
  enum { STEPS = 200000 };
  double best = 0;
  for (int i = 0; i < 300; ++i) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    double x = sum;
    for (long steps = STEPS; steps > 0; --steps) x = x * 0.5 + 1;
    sum = x;
    clock_gettime(CLOCK_MONOTONIC, &b);
    double us = 1e6 * (double)(b.tv_sec - a.tv_sec) + 1e-3 * (double)(b.tv_nsec - a.tv_nsec);
    if (STEPS / us > best) best = STEPS / us;
  }
  printf("%.1f", best);
}
"""

MAIN = """
int main(int argc, char** argv) {
  int n;
  double begin;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  prepare();
  for (n = 0; n < 5; ++n) one(n);
  MPI_Barrier(MPI_COMM_WORLD);
  begin = now();
  for (n = 0; n < ROUNDS; ++n) one(n);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("seconds %.9f\\n", now() - begin);
  MPI_Finalize();
  return 0;
}
"""


@dataclass
class Made:
    name: str
    kind: str  # of the advice; "" for none
    mark: str  # in the line of the call that is changed
    ranks: int
    text: str
    also: tuple = ()  # (kind, mark) of other advice that is as right

    def line(self, mark):
        """Of the call behind which that mark stands."""
        return next((number for number, line in enumerate(self.text.split("\n"), 1) if f"/* {mark} */" in line), 0)


def made(name, kind, mark, ranks, seed, size, rounds, body, also=()):
    head = HEAD % {"seed": seed, "name": name, "size": size, "rounds": rounds, "sleeps": int(ranks > 2)}
    return Made(name, kind, mark, ranks, head + body + MAIN, also)


def rounds_for(us):
    """So that the loop takes about a third of a second."""
    return max(40, min(400, int(330_000 / us)))


def put_off(draw, seed):
    """Figures 6 and 12: each send followed by its wait; who is early waits for who computes."""
    size, messages = draw.randrange(100_000, 1_000_000), draw.randrange(1, 4)
    first, other = draw.randrange(1000, 1600), draw.randrange(200, 500)
    form = draw.choice(("wait", "send"))
    send = "MPI_Send(out[i], SIZE, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD); /* fault */"
    if form == "wait":
        send = """MPI_Isend(out[i], SIZE, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[COUNT + i]);
    MPI_Wait(&requests[COUNT + i], MPI_STATUS_IGNORE); /* fault */"""
    body = f"""
enum {{ COUNT = {messages} }};
static char *out[COUNT], *in[COUNT];
static void prepare(void) {{
  for (int i = 0; i < COUNT; ++i) out[i] = memory(SIZE), in[i] = memory(SIZE);
}}
static void one(int n) {{
  MPI_Request requests[2 * COUNT];
  int i, early = (rank + n) % 2;
  for (i = 0; i < COUNT; ++i)
    MPI_Irecv(in[i], SIZE, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
  work(early ? {other} : {first});
  for (i = 0; i < COUNT; ++i) {{
#ifdef BETTER
    MPI_Isend(out[i], SIZE, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[COUNT + i]);
#else
    {send}
#endif
  }}
  tested(early ? {first} : {other}, requests, COUNT);
#ifdef BETTER
  MPI_Waitall(2 * COUNT, requests, MPI_STATUSES_IGNORE);
#else
  MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE); /* wait */
#endif
}}
"""
    return made("put off", "put off", "fault", 2, seed, size, rounds_for(first + other), body, (("test", "wait"),))


def to_the_odd(behind, receiver):
    """An even rank sends, computes for `behind` us, and writes to its buffer; what its odd neighbour does."""
    return f"""
static char *out, *in;
static void prepare(void) {{ out = memory(SIZE), in = memory(SIZE); }}
static void one(int n) {{
  MPI_Request request;
  double mine = n, all;
  if (rank % 2 == 0) {{
    work(100);
    MPI_Send(out, SIZE, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
    work({behind});
    memset(out, n, 64);
  }} else {{
{receiver}  }}
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}}
"""


def release(draw, seed):
    """A blocking send whose receiver computes."""
    ranks, size = draw.choice((2, 2, 4)), draw.randrange(100_000, 1_500_000)
    work, behind = draw.randrange(1500, 2500), draw.randrange(700, 1200)
    body = to_the_odd(behind, f"""\
    MPI_Irecv(in, SIZE, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, &request);
    tested({work}, &request, 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE); /* fault */
""")
    return made("release", "test", "fault", ranks, seed, size, rounds_for(work + behind), body)


def early(draw, seed):
    """The receive is posted behind the computation."""
    size, work = draw.randrange(2_000_000, 6_000_000), draw.randrange(600, 1200)
    body = f"""
static char *out, *in;
static void prepare(void) {{ out = memory(SIZE), in = memory(SIZE); }}
static void one(int n) {{
  MPI_Request requests[2];
  (void)n;
#ifdef BETTER
  MPI_Irecv(in, SIZE, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
#endif
  MPI_Isend(out, SIZE, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
  work({work});
#ifndef BETTER
  MPI_Irecv(in, SIZE, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]); /* fault */
#endif
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}}
"""
    return made("early", "early", "fault", 2, seed, size, rounds_for(work + 300), body)


def late(draw, seed):
    """The receive is posted behind the computation, and its sender waits for that."""
    ranks, size = draw.choice((2, 2, 4)), draw.randrange(100_000, 1_500_000)
    work, behind = draw.randrange(1500, 2500), draw.randrange(700, 1200)
    body = to_the_odd(behind, f"""\
#ifdef BETTER
    MPI_Irecv(in, SIZE, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, &request);
    work({work});
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#else
    work({work});
    MPI_Irecv(in, SIZE, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, &request); /* fault */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
""")
    return made("late", "early", "fault", ranks, seed, size, rounds_for(work + behind), body)


def pair(draw, seed):
    """A line of ranks, each of which sends to the next one and only then receives. With -DEARLY the receive is posted
    behind that of the round before, which breaks the chain as well."""
    ranks, size, work = draw.randrange(3, 5), draw.randrange(3_000_000, 6_000_000), draw.randrange(500, 900)
    body = f"""
static char *out, *in;
static void prepare(void) {{ out = memory(SIZE), in = memory(SIZE); }}
static void one(int n) {{
  int next = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL, before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
#ifdef EARLY
  static MPI_Request posted = MPI_REQUEST_NULL;
  static int rounds;
  if (rounds == 0) MPI_Irecv(in, SIZE, MPI_BYTE, before, 0, MPI_COMM_WORLD, &posted);
#endif
  (void)n;
  work({work});
#if defined(EARLY)
  MPI_Send(out, SIZE, MPI_BYTE, next, 0, MPI_COMM_WORLD);
  MPI_Wait(&posted, MPI_STATUS_IGNORE);
  if (++rounds < 5 + ROUNDS) MPI_Irecv(in, SIZE, MPI_BYTE, before, 0, MPI_COMM_WORLD, &posted);
#elif defined(BETTER)
  MPI_Request requests[2];
  MPI_Irecv(in, SIZE, MPI_BYTE, before, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, SIZE, MPI_BYTE, next, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
#else
  MPI_Send(out, SIZE, MPI_BYTE, next, 0, MPI_COMM_WORLD); /* fault */
  MPI_Recv(in, SIZE, MPI_BYTE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* recv */
#endif
}}
"""
    return made("pair", "pair", "fault", ranks, seed, size, rounds_for(work + 1200), body, (("early", "recv"),))


def without(draw, seed):
    """Nothing that another order of calls would make better."""
    size, work, form = draw.choice((1000, 50_000, 400_000)), draw.randrange(500, 1500), draw.randrange(3)
    before, behind = (f"work({work});", "") if form else ("", f"work({work});")
    end = "MPI_Barrier(MPI_COMM_WORLD);" if form == 2 else ""
    body = f"""
static char *out, *in;
static void prepare(void) {{ out = memory(SIZE), in = memory(SIZE); }}
static void one(int n) {{
  MPI_Request requests[2];
  (void)n;
  {before}
  MPI_Irecv(in, SIZE, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
  {behind}
  MPI_Isend(out, SIZE, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  {end}
}}
"""
    return made("without", "", "", 2, seed, size, rounds_for(work), body)


KINDS = put_off, release, early, late, pair, without


def drawn(kind, seed):
    return kind(random.Random(seed), seed)
