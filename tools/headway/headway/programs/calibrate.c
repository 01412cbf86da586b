// How messages of this MPI move, asked of two ranks in the place of a program that was recorded:
// `headway advise` compiles it with that MPI's mpicc and starts it with that program's launcher
// line. What the answers mean is judged by headway/record/facts.py.
//   --sizes LIST   those that count most first; a small one is asked before them
//   --seconds S    about so long for each pair; sizes for which no time is left are left out
// Pairs are rank 0 with the first other rank of its host ("near") and with the first of another
// host ("far"). All other ranks sleep meanwhile. One thread a rank; no core is taken from the
// launcher's binding.
//
// An experiment is a script for each of the two, played several times. Rank 0 sends one message to
// its partner; the letters:
//   P  Irecv of the message            I  Isend of it            W  its Wait
//   a  the sender may begin            R  Irecv and Wait         T  one MPI_Test of it
//   C  compute as long as the delay, which is longer than the transfer
//   L  as long, but one MPI_Iprobe after the other, for what never comes
//   O  one such MPI_Iprobe             B  Isend of nothing, for a receive that the other has posted
//   S  a blocking send of the message  Q  one MPI_Test of it after the other, as long as C
//   K  compute four times as long as C
//   M  eight Isends and their Waitall  N  eight Irecvs and their Waitall
// Told are, of both sides, the time from its first letter behind the `a` to its end, that of the
// last T, O or B, and of Q until the message was complete, that of the last W, R or S, and what its
// C lost: to a thread of the MPI or the kernel that moved the message on this core meanwhile.
// A run in which a rank waited for its core does not count, and is made again, as long as there is
// time: another program's slice looks like anything. Where none counts the best one does; where
// that is too bad, too, nothing is told.
#include "common.h"
#include "transport_words.h"

#include <math.h>
#include <stddef.h>

enum { tag_order = 1, tag_answer, tag_data, tag_other, tag_never, tag_times };
enum { most_runs = 9, fewest_runs = 3, host_room = 64, small_size = 64, several = 8 };
static const size_t most_of_several = 1 << 18;  // bytes; longer ones are hardly copied
static const double least_delay_us = 400;       // an MPI's thread may not wake for less

struct Experiment {
  const char *what, *sender, *receiver;
};

static const struct Experiment experiments[] = {
    {"receiver away", "IW", "PaCW"},
    {"sender away", "ICW", "PaW"},
    {"both away", "ICW", "PaCW"},
    {"receiver tests", "IW", "PaCTCW"},
    {"sender tests", "ICTCW", "PaW"},
    {"any call", "ILW", "PaLCW"},
    {"begins", "IW", "PaCBCW"},
    {"late", "IW", "aCR"},
    {"late, a call before", "IW", "aCOCR"},
    {"late, long", "IQW", "aKR"},
    {"receiver away, a blocking send", "S", "PaCW"},
    {"late, eight", "M", "aCN"},
};
enum { experiment_count = sizeof experiments / sizeof experiments[0] };

// An order of rank 0: one run of an experiment, a ping-pong, or the end.
enum { order_end = -1, order_transfer = -2 };
struct Order {
  int experiment;
  size_t bytes;
  double delay_us;
};

struct Times {
  double all, one, wait, lost;  // us
  double delayed;               // waited for a core, by the kernel's word
};

struct Pair {
  int other;  // rank
  const char* place;
  char *out, *in;
};

// ---- one run -----------------------------------------------------------------------------------
static void nap(double us) {
  struct timespec t = {0, (long)(us * 1e3)};
  nanosleep(&t, NULL);
}

// How long this thread has waited for a core, us; 0 where the kernel does not tell.
static double core_wait_us(void) {
  static int file = -2;
  char text[128];
  unsigned long long ran, waited;
  if (file == -2) file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  ssize_t got = file < 0 ? -1 : pread(file, text, sizeof text - 1, 0);
  if (got <= 0) return 0;
  text[got] = 0;
  return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? (double)waited * 1e-3 : 0;
}

static double steps_per_us;  // of this computation, undisturbed

static double compute_us(double us) {
  double begin = now_us(), now = begin, steps = 0;
  while (now < begin + us) {
    now = now_us();
    steps++;
  }
  return steps_per_us > 0 ? now - begin - steps / steps_per_us : steps / (now - begin);
}

// The quickest of several: others' time slices only slow it down.
static void learn_pace(void) {
  double best = 0;
  steps_per_us = 0;
  for (int i = 0; i < 5; i++) best = fmax(best, compute_us(200));
  steps_per_us = best;
}

static void probe_once(void) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, tag_never, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

struct Requests {
  MPI_Request message, other, row[several];
};

static void letter(char what, const struct Pair* p, const struct Order* o, struct Requests* r,
                   struct Times* t) {
  double begin = now_us();
  int flag, bytes = (int)o->bytes;
  switch (what) {
    case 'P':
      MPI_Irecv(p->in, bytes, MPI_BYTE, p->other, tag_data, MPI_COMM_WORLD, &r->message);
      return;
    case 'I':
      MPI_Isend(p->out, bytes, MPI_BYTE, p->other, tag_data, MPI_COMM_WORLD, &r->message);
      return;
    case 'C':
    case 'K': t->lost += compute_us(what == 'K' ? 4 * o->delay_us : o->delay_us); return;
    case 'L':
      while (now_us() < begin + o->delay_us) probe_once();
      return;
    case 'T':
      MPI_Test(&r->message, &flag, MPI_STATUS_IGNORE);
      t->one = now_us() - begin;
      return;
    case 'Q':
      do {
        MPI_Test(&r->message, &flag, MPI_STATUS_IGNORE);
        t->one = now_us() - begin;
      } while (!flag && t->one < o->delay_us);
      return;
    case 'O':
      probe_once();
      t->one = now_us() - begin;
      return;
    case 'B':
      MPI_Isend(p->out, 0, MPI_BYTE, p->other, tag_other, MPI_COMM_WORLD, &r->other);
      t->one = now_us() - begin;
      return;
    case 'M':
    case 'N':
      for (int i = 0; i < several; i++) {
        if (what == 'M')
          MPI_Isend(p->out, bytes, MPI_BYTE, p->other, tag_data, MPI_COMM_WORLD, &r->row[i]);
        else
          MPI_Irecv(p->in + o->bytes * (size_t)i, bytes, MPI_BYTE, p->other, tag_data,
                    MPI_COMM_WORLD, &r->row[i]);
      }
      MPI_Waitall(several, r->row, MPI_STATUSES_IGNORE);
      t->wait = now_us() - begin;
      return;
    case 'R':
      MPI_Irecv(p->in, bytes, MPI_BYTE, p->other, tag_data, MPI_COMM_WORLD, &r->message);
      break;
    case 'S': MPI_Send(p->out, bytes, MPI_BYTE, p->other, tag_data, MPI_COMM_WORLD); break;
    default: break;
  }
  MPI_Wait(&r->message, MPI_STATUS_IGNORE);  // behind S of nothing
  t->wait = now_us() - begin;
}

static struct Times play(const char* script, const struct Pair* p, const struct Order* o,
                         struct Requests* r) {
  struct Times t = {0, 0, 0, 0, 0};
  double waited = core_wait_us(), begin = now_us();
  for (; *script; script++) {
    if (*script == 'a') {
      char here = 1;
      MPI_Send(&here, 1, MPI_BYTE, p->other, tag_answer, MPI_COMM_WORLD);
      begin = now_us();
    } else {
      letter(*script, p, o, r, &t);
    }
  }
  t.all = now_us() - begin;
  t.delayed = core_wait_us() - waited;
  return t;
}

// By the partner: an order after the other. The first one is waited for asleep, since it may come
// only when another pair is done.
static void serve(const struct Pair* p) {
  struct Order o;
  MPI_Request first;
  int there = 0;
  MPI_Irecv(&o, sizeof o, MPI_BYTE, 0, tag_order, MPI_COMM_WORLD, &first);
  for (;;) {
    MPI_Test(&first, &there, MPI_STATUS_IGNORE);
    if (there) break;
    nap(1000);
  }
  while (o.experiment != order_end) {
    struct Requests r = {.message = MPI_REQUEST_NULL, .other = MPI_REQUEST_NULL};
    if (o.experiment == order_transfer) {
      double waited = core_wait_us();
      MPI_Recv(p->in, (int)o.bytes, MPI_BYTE, 0, tag_data, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(p->in, (int)o.bytes, MPI_BYTE, 0, tag_data, MPI_COMM_WORLD);
      waited = core_wait_us() - waited;
      MPI_Send(&waited, sizeof waited, MPI_BYTE, 0, tag_times, MPI_COMM_WORLD);
    } else {
      struct Times t = play(experiments[o.experiment].receiver, p, &o, &r);
      MPI_Wait(&r.other, MPI_STATUS_IGNORE);
      MPI_Send(&t, sizeof t, MPI_BYTE, 0, tag_times, MPI_COMM_WORLD);
    }
    MPI_Recv(&o, sizeof o, MPI_BYTE, 0, tag_order, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void give(const struct Pair* p, struct Order o) {
  MPI_Send(&o, sizeof o, MPI_BYTE, p->other, tag_order, MPI_COMM_WORLD);
}

static void run_once(const struct Pair* p, struct Order o, struct Times both[2]) {
  const struct Experiment* e = &experiments[o.experiment];
  struct Requests r = {.message = MPI_REQUEST_NULL, .other = MPI_REQUEST_NULL};
  char here;
  if (strchr(e->receiver, 'B'))
    MPI_Irecv(&here, 0, MPI_BYTE, p->other, tag_other, MPI_COMM_WORLD, &r.other);
  double waited = core_wait_us();
  give(p, o);
  MPI_Recv(&here, 1, MPI_BYTE, p->other, tag_answer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  both[0] = play(e->sender, p, &o, &r);
  both[0].delayed = core_wait_us() - waited;  // also before: the other one has begun by then
  MPI_Wait(&r.other, MPI_STATUS_IGNORE);
  MPI_Recv(&both[1], sizeof both[1], MPI_BYTE, p->other, tag_times, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
}

// ---- many runs ---------------------------------------------------------------------------------
static void print_list(const char* name, const struct Times* t, int n, size_t offset) {
  printf("\"%s\":[", name);
  for (int i = 0; i < n; i++)
    printf("%s%.3f", i ? "," : "", fmax(0, *(const double*)((const char*)&t[i] + offset)));
  printf("]");
}

static void print_side(const char* name, const struct Times* t, int n) {
  printf(",\"%s\":{", name);
  print_list("all", t, n, offsetof(struct Times, all));
  printf(",");
  print_list("one", t, n, offsetof(struct Times, one));
  printf(",");
  print_list("wait", t, n, offsetof(struct Times, wait));
  printf(",");
  print_list("lost", t, n, offsetof(struct Times, lost));
  printf("}");
}

// Where nobody is in MPI a thread of the MPI may want the cores: that is part of the answer.
static double share_delayed(const struct Order* o, const struct Times both[2]) {
  if (strcmp(experiments[o->experiment].what, "both away") == 0) return 0;
  return fmax(both[0].delayed, both[1].delayed) / o->delay_us;
}

static void measure(const struct Pair* p, struct Order o, int runs, double until) {
  struct Times sender[most_runs], receiver[most_runs], both[2];
  static const double counts = 0.05, perhaps = 0.1;  // of the delay
  double least = perhaps;
  int n = 0, some = 0;
  run_once(p, o, both);  // warms up
  for (int i = 0; n < runs && (i < 2 * runs || now_us() < until); i++) {
    run_once(p, o, both);
    double delayed = share_delayed(&o, both);
    if (delayed > counts && (n > 0 || delayed >= least)) continue;
    sender[n] = both[0];  // where none counts, the best one stands
    receiver[n] = both[1];
    least = delayed;
    some = n + 1;
    n += delayed <= counts;
  }
  if (some == 0) return;
  n = some;
  printf("@@{\"measure\":\"moves\",\"place\":\"%s\",\"size\":%zu,\"what\":\"%s\",\"delay_us\":%.3f",
         p->place, o.bytes, experiments[o.experiment].what, o.delay_us);
  print_side("sender", sender, n);
  print_side("receiver", receiver, n);
  printf("}\n");
  fflush(stdout);
}

// One way, as half of there and back; returns the median. For a tenth of a second, or, where others
// take the cores, for one.
static double transfer(const struct Pair* p, size_t bytes) {
  enum { least = 5, most = 40, tries = 400 };
  double samples[most], begun = now_us(), quickest = 1e30;
  int n = 0;
  for (int i = -2; i < tries && n < most && now_us() < begun + (n < least ? 1e6 : 1e5); i++) {
    double other, waited = core_wait_us();
    give(p, (struct Order){order_transfer, bytes, 0});
    double start = now_us();
    while (now_us() < start + 50) continue;  // the partner is in its receive
    start = now_us();
    MPI_Send(p->out, (int)bytes, MPI_BYTE, p->other, tag_data, MPI_COMM_WORLD);
    MPI_Recv(p->out, (int)bytes, MPI_BYTE, p->other, tag_data, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double one = (now_us() - start) / 2;
    waited = core_wait_us() - waited;
    MPI_Recv(&other, sizeof other, MPI_BYTE, p->other, tag_times, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    quickest = fmin(quickest, one);
    // Longer than twice the quickest is another program's slice, too.
    double most_waited = fmax(0.5, 0.01 * quickest);
    if (i >= 0 && fmax(waited, other) <= most_waited && one < 2 * quickest + 5) samples[n++] = one;
  }
  if (n == 0) return 0;
  printf("@@{\"measure\":\"transfer\",\"place\":\"%s\",\"size\":%zu,\"unit\":\"us\",\"samples\":[",
         p->place, bytes);
  for (int i = 0; i < n; i++) printf("%s%.3f", i ? "," : "", samples[i]);
  printf("]}\n");
  fflush(stdout);
  return median(samples, n);
}

static void ask_size(const struct Pair* p, size_t bytes, double until, int left) {
  double one = transfer(p, bytes);
  if (one == 0) return;
  struct Order o = {0, bytes, fmax(least_delay_us, 1.5 * one + 100)};
  double run = 1.6 * o.delay_us + one + 50;
  double share = (until - now_us()) / left / experiment_count;  // of an experiment
  int runs = (int)(share / run) - 1;
  if (runs > most_runs) runs = most_runs;
  if (runs < fewest_runs) runs = fewest_runs;
  for (o.experiment = 0; o.experiment < experiment_count; o.experiment++)
    if (bytes <= most_of_several || !strchr(experiments[o.experiment].sender, 'M'))
      measure(p, o, runs, now_us() + fmax(share, 3 * run * runs));
}

static void ask(const struct Pair* p, const size_t* sizes, int n, double seconds) {
  double until = now_us() + seconds * 1e6;
  for (int i = 0; i < n && (i <= 1 || now_us() < until); i++) ask_size(p, sizes[i], until, n - i);
  give(p, (struct Order){order_end, 0, 0});
}

// ---- who ---------------------------------------------------------------------------------------
// The first rank behind 0 whose host is, or is not, that of rank 0; -1.
static int partner(const char* hosts, int ranks, int near) {
  for (int i = 1; i < ranks; i++)
    if ((strncmp(hosts, hosts + (size_t)i * host_room, host_room) == 0) == near) return i;
  return -1;
}

static void all_done(void) {
  MPI_Request r;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &r);
  for (;;) {
    MPI_Test(&r, &done, MPI_STATUS_IGNORE);
    if (done) return;
    nap(2000);
  }
}

static void put_text(const char* text, size_t most) {
  putchar('"');
  for (size_t i = 0; i < most && text[i] && text[i] != '\n'; i++)
    putchar(text[i] == '"' || text[i] == '\\' || (unsigned char)text[i] < ' ' ? ' ' : text[i]);
  putchar('"');
}

static void print_text(const char* name, const char* text) {
  printf(",\"%s\":", name);
  put_text(text, SIZE_MAX);
}

// Those of the environment by which the MPI chooses how messages move.
static void print_words(void) {
  int count = 0;
  printf(",\"words\":[");
  for (char** word = environ; *word && count < most_transport_words; word++) {
    if (!is_transport_word(*word)) continue;
    if (count++) putchar(',');
    put_text(*word, transport_word_room - 1);
  }
  putchar(']');
}

// The library's first line; of MPICH, also the network modules that it was built with, the default
// first, and which one this rank's environment names; and its words on how messages move: as the
// header of a recording has them.
static void tell_line(int ranks, const int* partners) {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(mpi, &length);
  const char *modules = strstr(mpi, "ch4:"), *module = getenv("MPIR_CVAR_CH4_NETMOD");
  printf("@@{\"measure\":\"line\",\"ranks\":%d,\"near\":%d,\"far\":%d", ranks, partners[0],
         partners[1]);
  print_text("mpi", mpi);
  print_text("modules", modules ? modules + strlen("ch4:") : "");
  print_text("module", module ? module : "");
  print_words();
  printf("}\n");
  fflush(stdout);
}

int main(int argc, char** argv) {
  static const char* const places[] = {"near", "far"};
  size_t sizes[max_sizes + 1] = {small_size}, largest = small_size;
  int rank, ranks, n = 1 + arg_sizes(argc, argv, "1048576", sizes + 1);
  double seconds = arg_number(argc, argv, "--seconds", 3);
  char host[host_room] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < n; i++)
    if (sizes[i] > largest) largest = sizes[i];
  if (largest > 1u << 30) fail("--sizes: at most 1 GB");
  gethostname(host, sizeof host - 1);
  char* hosts = new_buffer((size_t)ranks * host_room);
  MPI_Allgather(host, host_room, MPI_CHAR, hosts, host_room, MPI_CHAR, MPI_COMM_WORLD);
  int partners[] = {partner(hosts, ranks, 1), partner(hosts, ranks, 0)};
  if (rank == 0) tell_line(ranks, partners);
  for (int i = 0; i < 2; i++) {
    if (partners[i] < 0 || (rank != 0 && rank != partners[i])) continue;
    learn_pace();
    size_t row = several * (largest < most_of_several ? largest : most_of_several);
    struct Pair p = {rank == 0 ? partners[i] : 0, places[i], new_buffer(largest),
                     new_buffer(largest > row ? largest : row)};
    if (rank == 0)
      ask(&p, sizes, n, seconds);
    else
      serve(&p);
    free(p.out);
    free(p.in);
  }
  free(hosts);
  all_done();
  MPI_Finalize();
  return 0;
}
