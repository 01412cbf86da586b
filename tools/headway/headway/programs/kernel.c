// The test kernel of the non-blocking paper (figure 1), driven by a script for each of two ranks:
// what they do after they have synchronised, and when. Times are read on both sides from one clock,
// so both ranks run on one machine (simulated hosts share it).
//   --zero SCRIPT --one SCRIPT   words: r   Irecv of all messages      s  Isend of all messages
//                                       wr  their Waitall              ws their Waitall
//                                       p   each Isend followed by its Wait
//                                       t   MPI_Test of the first      T  MPI_Testall of the
//                                       receives o   MPI_Wait for another request (a synchronous
//                                       send of a byte) q   Irecv of that byte, completed at the
//                                       end
//                                       @N  compute until N us after the start; @e: until the
//                                       entry;
//                                       @e+N
//                                       cN  compute what alone takes N us
//   --sizes LIST   --count N     messages from each rank that sends, each of that size
//   --entries N    how many entries (default 3); --runs N at each; --first US --apart US of
//   entries:
//                  without them from the transfer's own time
//   --watch s|ws   the call of rank 0 whose return is looked at
//   --find 1       the smallest size from --least to --most at which that call blocks; within
//   --within
// A call BLOCKS if its return moves with the entry of the other rank: slope at least 0.9 over the
// entries, as the median of the slopes between all pairs; at most 0.1 is free of it.
// One line for each size looked at: what was done when on both sides, typical times for each entry.
#include "common.h"

#include <math.h>

enum {
  max_ops = 48,
  max_messages = 16,
  max_events = 64,
  max_entries = 5,
  max_runs = 64,
  tag_message = 11,
  tag_other = 12,
  tag_order = 13,
  tag_answer = 14
};

static const double blocks_from = 0.9;

struct Op {
  char kind[3];
  int to_entry;
  double us;
};

struct Script {
  struct Op ops[max_ops];
  int n;
};

struct Event {
  char op[3];
  double begin, end;
};

// An order of rank 0: one run, or the end.
struct Order {
  int go_on;
  int count;
  size_t bytes;
  double entry, start;
};

struct Setup {
  int rank, count, entries, runs;
  double first, apart, ns_per_unit;
  const char* watch;
  struct Script script;
  char *out, *in;
};

struct Ran {
  int n;
  struct Event events[max_events];
};

// What all runs at one size gave: medians by entry.
struct Seen {
  double entry[max_entries];
  double begin[2][max_events][max_entries], end[2][max_events][max_entries];
  struct Ran shape[2];
  double transfer, slope;
  int blocks;
};

// ---- scripts ---------------------------------------------------------------------------------
static struct Script read_script(const char* text) {
  static const char* const words[] = {"r", "s", "wr", "ws", "p", "t", "T", "o", "q"};
  struct Script script = {.n = 0};
  char copy[1024];
  snprintf(copy, sizeof copy, "%s", text);
  for (char* word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
    if (script.n == max_ops) fail("a script has at most 48 words");
    struct Op* op = &script.ops[script.n++];
    memset(op, 0, sizeof *op);
    if (*word == '@' || *word == 'c') {
      op->kind[0] = *word;
      op->to_entry = word[1] == 'e';
      op->us = atof(word + (op->to_entry ? 2 : 1));
      continue;
    }
    int known = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
      known |= strcmp(word, words[i]) == 0;
    if (!known) fail("a word of a script is none of r s wr ws p t T o q @N cN");
    snprintf(op->kind, sizeof op->kind, "%s", word);
  }
  return script;
}

// ---- one run ---------------------------------------------------------------------------------
struct Requests {
  MPI_Request receives[max_messages], sends[max_messages], other, asked;
  int posted, sent;
};

static char other_out, other_in;

static void note(struct Ran* ran, const char* op, double begin, double start) {
  if (ran->n == max_events) fail("too many calls in a script");
  struct Event* e = &ran->events[ran->n++];
  snprintf(e->op, sizeof e->op, "%s", op);
  e->begin = begin - start;
  e->end = now_us() - start;
}

static void send_all(const struct Setup* s, const struct Order* o, struct Requests* r,
                     struct Ran* ran, int paired) {
  for (int i = 0; i < o->count; i++) {
    double begin = now_us();
    MPI_Isend(s->out + o->bytes * (size_t)i, (int)o->bytes, MPI_BYTE, 1 - s->rank, tag_message,
              MPI_COMM_WORLD, &r->sends[i]);
    note(ran, "s", begin, o->start);
    if (!paired) continue;
    begin = now_us();
    MPI_Wait(&r->sends[i], MPI_STATUS_IGNORE);
    note(ran, "ws", begin, o->start);
  }
  r->sent = o->count;
}

static void receive_all(const struct Setup* s, const struct Order* o, struct Requests* r) {
  for (int i = 0; i < o->count; i++)
    MPI_Irecv(s->in + o->bytes * (size_t)i, (int)o->bytes, MPI_BYTE, 1 - s->rank, tag_message,
              MPI_COMM_WORLD, &r->receives[i]);
  r->posted = o->count;
}

static void call(const struct Setup* s, const struct Order* o, struct Requests* r, const char* op) {
  int flag;
  if (strcmp(op, "r") == 0) {
    receive_all(s, o, r);
  } else if (strcmp(op, "wr") == 0) {
    MPI_Waitall(r->posted, r->receives, MPI_STATUSES_IGNORE);
  } else if (strcmp(op, "ws") == 0) {
    MPI_Waitall(r->sent, r->sends, MPI_STATUSES_IGNORE);
  } else if (strcmp(op, "t") == 0) {
    MPI_Test(&r->receives[0], &flag, MPI_STATUS_IGNORE);
  } else if (strcmp(op, "T") == 0) {
    MPI_Testall(r->posted, r->receives, &flag, MPI_STATUSES_IGNORE);
  } else if (strcmp(op, "q") == 0) {
    MPI_Irecv(&other_in, 1, MPI_BYTE, 1 - s->rank, tag_other, MPI_COMM_WORLD, &r->asked);
  } else {
    MPI_Issend(&other_out, 1, MPI_BYTE, 1 - s->rank, tag_other, MPI_COMM_WORLD, &r->other);
    MPI_Wait(&r->other, MPI_STATUS_IGNORE);
  }
}

static void play(const struct Setup* s, const struct Order* o, struct Ran* ran) {
  struct Requests r = {.other = MPI_REQUEST_NULL, .asked = MPI_REQUEST_NULL};
  ran->n = 0;
  while (now_us() < o->start) continue;
  for (int i = 0; i < s->script.n; i++) {
    const struct Op* op = &s->script.ops[i];
    double begin = now_us();
    if (op->kind[0] == '@') {
      double until = o->start + op->us + (op->to_entry ? o->entry : 0);
      while (now_us() < until) continue;
    } else if (op->kind[0] == 'c') {
      compute((uint64_t)(op->us * 1e3 / s->ns_per_unit));
    } else if (op->kind[0] == 's' || op->kind[0] == 'p') {
      send_all(s, o, &r, ran, op->kind[0] == 'p');
      continue;  // has noted each
    } else {
      call(s, o, &r, op->kind);
    }
    note(ran, op->kind, begin, o->start);
  }
  MPI_Waitall(r.posted, r.receives, MPI_STATUSES_IGNORE);
  MPI_Waitall(r.sent, r.sends, MPI_STATUSES_IGNORE);
  MPI_Wait(&r.asked, MPI_STATUS_IGNORE);
}

// Both ranks begin at one time, a moment after rank 1 has said that it is there.
static void synchronise(const struct Setup* s, struct Order* o) {
  char here = 1;
  if (s->rank == 0) {
    MPI_Send(o, sizeof *o, MPI_BYTE, 1, tag_order, MPI_COMM_WORLD);
    if (!o->go_on) return;
    MPI_Recv(&here, 1, MPI_BYTE, 1, tag_answer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    o->start = now_us() + 300;
    MPI_Send(&o->start, 1, MPI_DOUBLE, 1, tag_order, MPI_COMM_WORLD);
  } else {
    MPI_Recv(o, sizeof *o, MPI_BYTE, 0, tag_order, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!o->go_on) return;
    MPI_Send(&here, 1, MPI_BYTE, 0, tag_answer, MPI_COMM_WORLD);
    MPI_Recv(&o->start, 1, MPI_DOUBLE, 0, tag_order, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void serve(const struct Setup* s) {
  struct Order o;
  struct Ran ran;
  for (;;) {
    synchronise(s, &o);
    if (!o.go_on) return;
    play(s, &o, &ran);
    MPI_Send(&ran, sizeof ran, MPI_BYTE, 0, tag_answer, MPI_COMM_WORLD);
  }
}

// By rank 0: what both did.
static void run_once(const struct Setup* s, size_t bytes, double entry, struct Ran* both) {
  struct Order o = {.go_on = 1, .count = s->count, .bytes = bytes, .entry = entry};
  synchronise(s, &o);
  play(s, &o, &both[0]);
  MPI_Recv(&both[1], sizeof both[1], MPI_BYTE, 1, tag_answer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Other processes' time slices only lengthen: what counts is the second quickest of all runs, so
// that neither a slice nor one odd run decides.
static double typical(double* values, int n) {
  double middle = median(values, n);  // sorts
  return n >= 3 ? values[1] : middle;
}

// ---- many runs -------------------------------------------------------------------------------
static double latest(const struct Ran* both) {
  double end = 0;
  for (int r = 0; r < 2; r++)
    for (int i = 0; i < both[r].n; i++)
      if (both[r].events[i].op[0] != 'q' && both[r].events[i].end > end)
        end = both[r].events[i].end;
  return end;
}

// When the last call of that name of rank 0 returned, for an entry; -1 if there is none.
static double returned(const struct Seen* seen, const char* watch, int entry) {
  for (int i = seen->shape[0].n - 1; i >= 0; i--)
    if (strcmp(seen->shape[0].events[i].op, watch) == 0) return seen->end[0][i][entry];
  return -1;
}

static double slope_of(const struct Seen* seen, const char* watch, int entries) {
  double slopes[max_entries * max_entries];
  int n = 0;
  for (int i = 0; i < entries; i++)
    for (int k = i + 1; k < entries; k++)
      slopes[n++] =
          (returned(seen, watch, k) - returned(seen, watch, i)) / (seen->entry[k] - seen->entry[i]);
  return n ? median(slopes, n) : 0;
}

// A transfer that nobody delays tells how far the entries have to lie.
static double transfer_time(const struct Setup* s, size_t bytes) {
  double times[3];
  struct Ran both[2];
  run_once(s, bytes, 0, both);  // warms the pair up
  for (int i = 0; i < 3; i++) {
    run_once(s, bytes, 0, both);
    times[i] = latest(both);
  }
  return median(times, 3);
}

static void look(const struct Setup* s, size_t bytes, struct Seen* seen) {
  static double begins[2][max_events][max_runs], ends[2][max_events][max_runs];
  struct Ran both[2];
  memset(seen, 0, sizeof *seen);
  double floor = 0;
  for (int i = 0; i < s->script.n; i++)  // what the script itself lasts is no transfer
    if (s->script.ops[i].kind[0] == '@' && s->script.ops[i].us > floor) floor = s->script.ops[i].us;
  seen->transfer = transfer_time(s, bytes) - floor;
  double first = s->first >= 0 ? s->first : 1.5 * (seen->transfer > 500 ? seen->transfer : 500);
  double apart = s->apart > 0 ? s->apart : first > 2000 ? first : 2000;
  for (int e = 0; e < s->entries; e++) {
    seen->entry[e] = first + apart * e;
    for (int run = -1; run < s->runs; run++) {
      run_once(s, bytes, seen->entry[e], both);
      for (int r = 0; r < 2 && run >= 0; r++)
        for (int i = 0; i < both[r].n; i++) {
          begins[r][i][run] = both[r].events[i].begin;
          ends[r][i][run] = both[r].events[i].end;
        }
    }
    for (int r = 0; r < 2; r++) {
      seen->shape[r] = both[r];
      for (int i = 0; i < both[r].n; i++) {
        seen->begin[r][i][e] = typical(begins[r][i], s->runs);
        seen->end[r][i][e] = typical(ends[r][i], s->runs);
      }
    }
  }
  seen->slope = slope_of(seen, s->watch, s->entries);
  // A wait behind a call that blocks already moves with that call.
  if (strcmp(s->watch, "ws") == 0) {
    double before = slope_of(seen, "s", s->entries);
    if (before >= blocks_from) seen->slope -= before;
  }
  seen->blocks = seen->slope >= blocks_from;
}

static void print_medians(const char* name, const double* values, int n) {
  printf("\"%s\":[", name);
  for (int i = 0; i < n; i++) printf("%s%.2f", i ? "," : "", values[i]);
  printf("]");
}

static void report(const struct Setup* s, size_t bytes, const struct Seen* seen) {
  printf(
      "@@{\"measure\":\"kernel\",\"size\":%zu,\"unit\":\"slope\",\"samples\":[%.4f],\"extra\":{"
      "\"count\":%d,\"watch\":\"%s\",\"runs\":%d,\"blocks\":%d,\"transfer_us\":%.2f,",
      bytes, seen->slope, s->count, s->watch, s->runs, seen->blocks, seen->transfer);
  print_medians("entries", seen->entry, s->entries);
  for (int r = 0; r < 2; r++) {
    printf(",\"%s\":[", r ? "one" : "zero");
    for (int i = 0; i < seen->shape[r].n; i++) {
      printf("%s{\"op\":\"%s\",", i ? "," : "", seen->shape[r].events[i].op);
      print_medians("begin", seen->begin[r][i], s->entries);
      printf(",");
      print_medians("end", seen->end[r][i], s->entries);
      printf("}");
    }
    printf("]");
  }
  printf("}}\n");
  fflush(stdout);
}

// What is neither free nor moves with the entry may be a run that was hit: once more, with more
// runs.
static int look_and_tell(struct Setup* s, size_t bytes) {
  static struct Seen seen;
  look(s, bytes, &seen);
  if ((seen.slope > 0.1 && seen.slope < blocks_from) || seen.slope > 1.2) {
    int runs = s->runs;
    s->runs = 3 * runs < max_runs ? 3 * runs : max_runs;
    look(s, bytes, &seen);
    s->runs = runs;
  }
  report(s, bytes, &seen);
  return seen.blocks;
}

static void bisect(struct Setup* s, size_t* below, size_t* above, double within) {
  while ((double)*above > (double)*below * (1 + within)) {
    size_t middle = (size_t)((double)*below * sqrt((double)*above / (double)*below));
    if (middle <= *below || middle >= *above) return;
    if (look_and_tell(s, middle))
      *above = middle;
    else
      *below = middle;
  }
}

// The smallest size that blocks: doubled until one does, then bisected by ratio.
static void find(struct Setup* s, size_t least, size_t most, double within) {
  size_t below = 0, above = 0;
  for (size_t bytes = least; bytes <= most; bytes *= 2) {
    if (look_and_tell(s, bytes)) {
      above = bytes;
      break;
    }
    below = bytes;
  }
  while (above && !below && above > 1) {  // the first one blocks already: downwards
    size_t less = above / 2;
    if (look_and_tell(s, less))
      above = less;
    else
      below = less;
  }
  // A wrong answer on the way would lead astray, so the ends are asked again, outside of what is
  // known.
  for (int again = 0; below && above && again < 3; again++) {
    bisect(s, &below, &above, within);
    size_t less = (size_t)((double)below / (1 + within)),
           more = (size_t)((double)above * (1 + within));
    if (less < 1 || more > most) break;
    if (look_and_tell(s, less)) {
      above = less;
      below = (size_t)((double)less / 1.5);
    } else if (!look_and_tell(s, more)) {
      below = more;
      above = (size_t)((double)more * 1.5) < most ? (size_t)((double)more * 1.5) : most;
    } else {
      break;
    }
  }
  printf(
      "@@{\"measure\":\"blocks_from\",\"size\":%zu,\"unit\":\"bytes\",\"samples\":[%zu],\"extra\":{"
      "\"count\":%d,\"watch\":\"%s\",\"free_to\":%zu,\"least\":%zu,\"most\":%zu}}\n",
      above, above, s->count, s->watch, below, least, most);
  fflush(stdout);
}

int main(int argc, char** argv) {
  static struct Setup s;
  size_t sizes[max_sizes];
  int ranks, n = arg_sizes(argc, argv, "1024", sizes);
  pin_before_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("kernel wants two ranks");
  pin_to_core(s.rank);
  s.ns_per_unit = calibrate_compute();
  s.script = read_script(s.rank == 0 ? arg_text(argc, argv, "--zero", "s ws")
                                     : arg_text(argc, argv, "--one", "r @e wr"));
  s.count = (int)arg_number(argc, argv, "--count", 1);
  s.entries = (int)arg_number(argc, argv, "--entries", 3);
  s.runs = (int)arg_number(argc, argv, "--runs", 7);
  s.first = arg_number(argc, argv, "--first", -1);
  s.apart = arg_number(argc, argv, "--apart", 0);
  s.watch = arg_text(argc, argv, "--watch", "s");
  int finding = arg_number(argc, argv, "--find", 0) > 0;
  size_t least = (size_t)arg_number(argc, argv, "--least", 1024);
  size_t most = (size_t)arg_number(argc, argv, "--most", 4 << 20);
  if (s.count < 1 || s.count > max_messages) fail("--count must be 1 to 16");
  if (s.entries < 1 || s.entries > max_entries) fail("--entries must be 1 to 5");
  if (s.runs < 1 || s.runs > max_runs) fail("--runs must be 1 to 64");
  if (least < 1) fail("--least must be at least 1");
  size_t largest = finding ? most : 1;
  for (int i = 0; i < n && !finding; i++)
    if (sizes[i] > largest) largest = sizes[i];
  s.out = new_buffer(largest * (size_t)s.count);
  s.in = new_buffer(largest * (size_t)s.count);
  if (s.rank == 0) {
    if (finding) find(&s, least, most, arg_number(argc, argv, "--within", 0.01));
    for (int i = 0; i < n && !finding; i++) look_and_tell(&s, sizes[i]);
    struct Order end = {0};
    synchronise(&s, &end);
  } else {
    serve(&s);
  }
  MPI_Finalize();
  return 0;
}
