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
//                                       k   MPI_Testall of the sends until 0.6 of the entry
//                                       w   write over what is sent: no program may, and what
//                                       arrives tells whether it had left before
//                                       cN  compute what alone takes N us
//   --sizes LIST   --count N     messages from each rank that sends, each of that size
//   --entries N    how many entries (default 3); --runs N at each; --first US --apart US of
//   entries:
//                  without them from the transfer's own time
//   --watch s|ws   the call of rank 0 whose return is looked at; left (with --find): not a call,
//                  but whether a message stays with its sender until the receiver's entry
//   --find 1       the smallest size from --least to --most at which that call blocks; within
//   --within
// A call BLOCKS if its return moves with the entry of the other rank: slope at least 0.9 over the
// entries, as the median of the slopes between all pairs; at most 0.1 is free of it.
// Other processes take cores away: that makes a return later, never earlier, unless it kept a rank
// from coming to the start in time; such a run does not count. So a call that returned before its
// entry does not block, and a search asks until slope and order agree; it asks the ends of what it
// found again and says so if they do not hold ("held").
// One line for each size looked at: what was done when on both sides, typical times for each entry.
#include "common.h"
#include "threshold.h"

enum {
  max_ops = 48,
  max_messages = 16,
  max_events = 64,
  max_entries = 5,
  max_runs = 64,
  max_again = 20,
  tag_message = 11,
  tag_other = 12,
  tag_order = 13,
  tag_answer = 14
};

static const double blocks_from = 0.9;
static const double late_us = 5;  // who begins so late after the start has lost its core
// The start lies so long after rank 1 has said that it is there.
static const double least_ahead_us = 300, most_ahead_us = 10000;
static double ahead_us = 300;  // rank 0's

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
  int stayed;  // what was sent is what was written over it
  struct Event events[max_events];
};

// What all runs at one size gave: medians by entry.
struct Seen {
  double entry[max_entries];
  double begin[2][max_events][max_entries], end[2][max_events][max_entries];
  struct Ran shape[2];
  double transfer, slope;
  int runs;  // that were asked for, at each entry
  int counted[max_entries];
  int early;  // of all that count: returned before the entry
  int blocks;
};

// ---- scripts ---------------------------------------------------------------------------------
static struct Script read_script(const char* text) {
  static const char* const words[] = {"r", "s", "wr", "ws", "p", "t", "T", "o", "q", "k", "w"};
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
    if (!known) fail("a word of a script is none of r s wr ws p t T o q k w @N cN");
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

enum { sent_first = 1, written_over = 2 };

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
  } else if (strcmp(op, "k") == 0) {
    do MPI_Testall(r->sent, r->sends, &flag, MPI_STATUSES_IGNORE);
    while (now_us() < o->start + 0.6 * o->entry);
  } else if (strcmp(op, "w") == 0) {
    memset(s->out, written_over, o->bytes * (size_t)o->count);
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
  ran->stayed = r.posted && s->in[o->bytes * (size_t)o->count - 1] == written_over;
}

static int writes_over(const struct Setup* s) {
  for (int i = 0; i < s->script.n; i++)
    if (s->script.ops[i].kind[0] == 'w' && !s->script.ops[i].kind[1]) return 1;
  return 0;
}

// Both ranks begin at one time, a moment after rank 1 has said that it is there.
static void synchronise(const struct Setup* s, struct Order* o) {
  char here = 1;
  if (s->rank == 0) {
    MPI_Send(o, sizeof *o, MPI_BYTE, 1, tag_order, MPI_COMM_WORLD);
    if (!o->go_on) return;
    MPI_Recv(&here, 1, MPI_BYTE, 1, tag_answer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    o->start = now_us() + ahead_us;
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

static int is_late(const struct Ran* of) { return of->n && of->events[0].begin > late_us; }

// By rank 0: what both did.
static void run_any(const struct Setup* s, size_t bytes, double entry, struct Ran* both) {
  struct Order o = {.go_on = 1, .count = s->count, .bytes = bytes, .entry = entry};
  if (writes_over(s)) memset(s->out, sent_first, bytes * (size_t)s->count);
  synchronise(s, &o);
  play(s, &o, &both[0]);
  MPI_Recv(&both[1], sizeof both[1], MPI_BYTE, 1, tag_answer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// A run is void if a rank was not there at the start: the other one met it inside of MPI, or late.
// Then it is made again, as long as there is hope. Rank 1 may lie further away than the start is
// ahead, or lose its core in step with others' time slices: from its second time on each start is
// twice as far ahead as the last one, in turns. What did is kept for a while; the further, the
// likelier is a lost core.
// Returns whether the last run counts.
static int run_once(const struct Setup* s, size_t bytes, double entry, struct Ran* both) {
  static int calm;  // runs that count since that was changed
  int late = 0;
  for (int again = 0; again <= max_again; again++) {
    run_any(s, bytes, entry, both);
    int void_by_one = is_late(&both[1]);
    if (!void_by_one && !is_late(&both[0])) {
      if (++calm % 16 == 0) ahead_us = fmax(least_ahead_us, ahead_us / 2);
      return 1;
    }
    if (!void_by_one || ++late < 2) continue;
    ahead_us = 2 * ahead_us <= most_ahead_us ? 2 * ahead_us : least_ahead_us;
    calm = 0;
  }
  return 0;
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
  double least = 1e30;
  struct Ran both[2];
  run_once(s, bytes, 0, both);  // warms the pair up
  for (int i = 0; i < 3; i++)
    if (run_once(s, bytes, 0, both) && latest(both) < least) least = latest(both);
  if (least == 1e30) fail("the two ranks never began together");
  return least;
}

static void place_entries(const struct Setup* s, size_t bytes, struct Seen* seen) {
  memset(seen, 0, sizeof *seen);
  double floor = 0;
  for (int i = 0; i < s->script.n; i++)  // what the script itself lasts is no transfer
    if (s->script.ops[i].kind[0] == '@' && s->script.ops[i].us > floor) floor = s->script.ops[i].us;
  seen->transfer = transfer_time(s, bytes) - floor;
  double first = s->first >= 0 ? s->first : 1.5 * (seen->transfer > 500 ? seen->transfer : 500);
  double apart = s->apart > 0 ? s->apart : first > 2000 ? first : 2000;
  for (int e = 0; e < s->entries; e++) seen->entry[e] = first + apart * e;
}

static struct {
  double begins[max_entries][2][max_events][max_runs], ends[max_entries][2][max_events][max_runs];
} all_runs;

static int returned_early(const struct Ran* of, const char* watch, double entry) {
  for (int i = of->n - 1; i >= 0; i--)
    if (strcmp(of->events[i].op, watch) == 0) return of->events[i].end < entry - 1;
  return 0;
}

// How many runs count, at the entry that has the fewest.
static int fewest(const struct Setup* s, const struct Seen* seen) {
  int n = seen->counted[0];
  for (int e = 1; e < s->entries; e++)
    if (seen->counted[e] < n) n = seen->counted[e];
  return n;
}

static void keep(const struct Setup* s, const struct Ran* both, int entry, struct Seen* seen) {
  int run = seen->counted[entry]++;
  seen->early += returned_early(&both[0], s->watch, seen->entry[entry]);
  for (int r = 0; r < 2; r++)
    for (int i = 0; i < both[r].n; i++) {
      all_runs.begins[entry][r][i][run] = both[r].events[i].begin;
      all_runs.ends[entry][r][i][run] = both[r].events[i].end;
    }
}

// More runs at one entry, beside those that were made. Ends where there is no hope.
static void look_at(const struct Setup* s, size_t bytes, int more, int entry, struct Seen* seen) {
  struct Ran both[2];
  int in_vain = !run_once(s, bytes, seen->entry[entry], both);  // warms up
  for (int run = 0; run < more && in_vain < 2; run++) {
    if (run_once(s, bytes, seen->entry[entry], both))
      keep(s, both, entry, seen);
    else
      in_vain++;
  }
  int n = seen->counted[entry];
  for (int r = 0; r < 2; r++) {
    seen->shape[r] = both[r];
    for (int i = 0; i < both[r].n && n; i++) {
      seen->begin[r][i][entry] = typical(all_runs.begins[entry][r][i], n);
      seen->end[r][i][entry] = typical(all_runs.ends[entry][r][i], n);
    }
  }
}

static void look_more(const struct Setup* s, size_t bytes, int more, struct Seen* seen) {
  int runs = seen->runs + more < max_runs ? seen->runs + more : max_runs;
  for (int e = 0; e < s->entries; e++) look_at(s, bytes, runs - seen->runs, e, seen);
  seen->runs = runs;
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
      "\"count\":%d,\"watch\":\"%s\",\"runs\":%d,\"early\":%d,\"blocks\":%d,\"transfer_us\":%.2f,",
      bytes, seen->slope, s->count, s->watch, fewest(s, seen), seen->early, seen->blocks,
      seen->transfer);
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

// What is neither free nor moves with the entry may be runs that were hit: once more, with more of
// them.
static void look_and_tell(const struct Setup* s, size_t bytes) {
  static struct Seen seen;
  place_entries(s, bytes, &seen);
  look_more(s, bytes, s->runs, &seen);
  if ((seen.slope > 0.1 && seen.slope < blocks_from) || seen.slope > 1.2)
    look_more(s, bytes, 2 * s->runs, &seen);
  if (!fewest(s, &seen)) fail("the two ranks never began together");
  report(s, bytes, &seen);
}

// ---- the search ------------------------------------------------------------------------------
// Slope and order must agree: none that blocks returned before its entry, and of those that do not
// block some did. A wait behind a call that blocks always returns behind the entry: there the slope
// alone decides.
static int is_sure(const struct Setup* s, const struct Seen* seen) {
  if (strcmp(s->watch, "ws") == 0 && slope_of(seen, "s", s->entries) >= blocks_from) return 1;
  return seen->blocks ? seen->early == 0 : seen->early >= 2;
}

static int is_over_before(const struct Ran* of, const char* op, double entry) {
  for (int i = 0; i < of->n; i++)
    if (strcmp(of->events[i].op, op) == 0) return of->events[i].end < entry;
  return 0;
}

// By what arrives. The entry is late enough for all to leave; a message that left in one run does
// not need the receiver; that it stays is only sure when it was seen often enough. A sender that
// lost its core and wrote behind the entry tells nothing.
static int asks_stays(const struct Setup* s, size_t bytes) {
  enum { wanted = 5, most = 25 };
  struct Seen seen;
  struct Ran both[2];
  int stayed = 0, runs = 0, in_vain = 0;
  place_entries(s, bytes, &seen);
  for (int i = 0; i < most && runs < wanted && in_vain < 2; i++) {
    if (!run_once(s, bytes, 4 * seen.entry[0], both)) {
      in_vain++;
    } else if (is_over_before(&both[0], "w", 4 * seen.entry[0])) {
      runs++;
      stayed += both[1].stayed;
    }
  }
  if (!runs) return answer_in_doubt;
  printf(
      "@@{\"measure\":\"stays\",\"size\":%zu,\"unit\":\"share\",\"samples\":[%.2f],\"extra\":{"
      "\"count\":%d,\"runs\":%d}}\n",
      bytes, (double)stayed / runs, s->count, runs);
  fflush(stdout);
  if (stayed < runs) return 0;
  return answer_blocks | (runs < wanted ? answer_in_doubt : 0);
}

static int asks(void* with, size_t bytes) {
  const struct Setup* s = with;
  static struct Seen seen;
  if (strcmp(s->watch, "left") == 0) return asks_stays(s, bytes);
  place_entries(s, bytes, &seen);
  look_more(s, bytes, s->runs, &seen);
  while (fewest(s, &seen) && !is_sure(s, &seen) && seen.runs < max_runs)
    look_more(s, bytes, 2 * seen.runs, &seen);
  if (!fewest(s, &seen)) return answer_in_doubt;
  report(s, bytes, &seen);
  return (seen.blocks ? answer_blocks : 0) | (is_sure(s, &seen) ? 0 : answer_in_doubt);
}

// The smallest size from which that call blocks; not held: answers contradicted each other, or it
// could not be asked.
static void find(const struct Setup* s, size_t least, size_t most, double within) {
  struct Threshold t = {.ask = asks, .with = (void*)s, .most = most, .within = within};
  size_t found = find_threshold(&t, least);
  printf(
      "@@{\"measure\":\"blocks_from\",\"size\":%zu,\"unit\":\"bytes\",\"samples\":[%zu],\"extra\":{"
      "\"count\":%d,\"watch\":\"%s\",\"free_to\":%zu,\"least\":%zu,\"most\":%zu,\"held\":%d,"
      "\"doubts\":%d}}\n",
      found, found, s->count, s->watch, t.below, least, most, t.held, t.doubts);
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
