// A structured adaptive mesh in three dimensions: a shock runs along a closed tube through the wavy
// border between a light and a heavy gas (Richtmyer and Meshkov's instability). The application of
// "Understanding the Behavior and Performance of Non-blocking Communications in MPI" was of this
// kind; its ghost exchange can be written in each of the paper's forms here. Plain MPI, so that any
// MPI's mpicc compiles it. Prints one line of JSON behind @@, as the studies' programs do.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

static const char usage[] =
    "usage: samr [OPTIONS]\n"
    "  --grid NXxNYxNZ   cells of the coarsest level (128x32x32), multiples of the block's edge\n"
    "  --block N         cells a side of a block: 4, 8 or 16 (8)\n"
    "  --levels N        1 to 4, each twice as fine as the one before (3)\n"
    "  --form F          6, 7, 6c, 6ct, 12 or 13 (13): how ghosts are exchanged\n"
    "  --iterations N    measured steps of the coarsest level (10); --warmup N before them (0)\n"
    "  --regrid N        a new mesh every N steps (4)\n"
    "  --problem P       rm, or one of which the solution is known: tube, the shock alone; ramp, a "
    "density\n"
    "                    that grows evenly along y and is carried along it (rm)\n"
    "  --until T         stop at that time, in cells of the coarsest level; iterations are the "
    "most\n"
    "  --mach M          of the shock (1.5); --step D: density behind the border (3)\n"
    "  --jump S          a block is refined where density jumps by that share from cell to cell "
    "(0.1)\n"
    "  --pace MHZ        compute as slowly as an old processor, asleep; --cycles N: of a cell "
    "(2000)\n";

struct Options {
  int grid[3], block, levels, regrid;
  long iterations, warmup;
  double until, pace, cycles, jump;
  enum Form form;
  struct Setting setting;
  int help;
};

// ---- the command line
// ------------------------------------------------------------------------------
static int number(const char* text, double least, double most, double* out) {
  char* end;
  double value = strtod(text, &end);
  if (end == text || *end || !(value >= least && value <= most)) return 0;
  *out = value;
  return 1;
}

static int whole(const char* text, long least, long most, long* out) {
  double value;
  if (!number(text, (double)least, (double)most, &value) || value != floor(value)) return 0;
  *out = (long)value;
  return 1;
}

static int small(const char* text, long least, long most, int* out) {
  long value;
  if (!whole(text, least, most, &value)) return 0;
  *out = (int)value;
  return 1;
}

static int form_of(const char* text, enum Form* out) {
  for (int i = 0; i < form_count; i++)
    if (strcmp(text, form_names[i]) == 0) {
      *out = (enum Form)i;
      return 1;
    }
  return 0;
}

static int problem_of(const char* text, enum Problem* out) {
  static const char* const names[] = {"rm", "tube", "ramp"};  // as in enum Problem
  for (int i = 0; i < 3; i++)
    if (strcmp(text, names[i]) == 0) {
      *out = (enum Problem)i;
      return 1;
    }
  return 0;
}

static int grid_of(const char* text, int grid[3]) {
  int end = 0;
  return sscanf(text, "%dx%dx%d%n", &grid[0], &grid[1], &grid[2], &end) == 3 && text[end] == '\0';
}

// What `name` wants, if `value` is not it; NULL if it is.
static const char* take(struct Options* o, const char* name, const char* value) {
  if (strcmp(name, "--grid") == 0) return grid_of(value, o->grid) ? NULL : "NXxNYxNZ";
  if (strcmp(name, "--block") == 0)
    return small(value, 4, most_edge, &o->block) ? NULL : "4, 8 or 16";
  if (strcmp(name, "--levels") == 0)
    return small(value, 1, most_levels, &o->levels) ? NULL : "1 to 4";
  if (strcmp(name, "--form") == 0)
    return form_of(value, &o->form) ? NULL : "6, 7, 6c, 6ct, 12 or 13";
  if (strcmp(name, "--iterations") == 0)
    return whole(value, 1, 1000000, &o->iterations) ? NULL : "a number";
  if (strcmp(name, "--warmup") == 0)
    return whole(value, 0, 1000000, &o->warmup) ? NULL : "a number";
  if (strcmp(name, "--regrid") == 0)
    return small(value, 1, 1000000, &o->regrid) ? NULL : "a number";
  if (strcmp(name, "--until") == 0) return number(value, 0, 1e9, &o->until) ? NULL : "a time";
  if (strcmp(name, "--mach") == 0)
    return number(value, 1.01, 5, &o->setting.mach) ? NULL : "1.01 to 5";
  if (strcmp(name, "--step") == 0)
    return number(value, 0.1, 10, &o->setting.step) ? NULL : "0.1 to 10";
  if (strcmp(name, "--jump") == 0) return number(value, 1e-6, 100, &o->jump) ? NULL : "a share";
  if (strcmp(name, "--pace") == 0) return number(value, 0, 1e6, &o->pace) ? NULL : "a clock in MHz";
  if (strcmp(name, "--cycles") == 0) return number(value, 1, 1e9, &o->cycles) ? NULL : "a number";
  if (strcmp(name, "--problem") != 0) return "";
  return problem_of(value, &o->setting.problem) ? NULL : "rm, tube or ramp";
}

static int wrong(const char** about, const char* name, const char* text) {
  about[0] = name;
  about[1] = text;
  return 0;
}

// Whether the line can be followed; else what is wrong, in two parts.
static int parse(int argc, char** argv, struct Options* o, const char** about) {
  *o = (struct Options){.grid = {128, 32, 32},
                        .block = 8,
                        .levels = 3,
                        .regrid = 4,
                        .iterations = 10,
                        .form = form_13,
                        .cycles = 2000,
                        .jump = 0.1,
                        .setting = {.mach = 1.5, .step = 3}};
  for (int i = 1; i < argc; i += 2) {
    if (strcmp(argv[i], "--help") == 0) return o->help = 1;
    const char* wants = take(o, argv[i], i + 1 < argc ? argv[i + 1] : "");
    if (wants) return wrong(about, argv[i], *wants ? wants : "is no option");
  }
  if (o->block != 4 && o->block != 8 && o->block != 16)
    return wrong(about, "--block", "4, 8 or 16");
  for (int a = 0; a < 3; a++) {
    int n = o->grid[a];
    if (n < o->block || n % o->block || n > 65536)
      return wrong(about, "--grid", "multiples of the block's edge");
    o->setting.base_cells[a] = n;
  }
  return 1;
}

// ---- what is told of the gas
// ---------------------------------------------------------------------------
static int is_leaf(const struct World* w, int i) {
  return w->mesh.blocks[i].data && w->mesh.blocks[i].child < 0;
}

// Mass, energy, distance from the exact solution. Each block is summed by its rank, and all of them
// in the order of the mesh, so that the bits do not depend on who has which.
static void sums_of(const struct World* w, double sums[3]) {
  int e = w->mesh.edge, n = w->mesh.count;
  double *mine = take_memory(3 * (size_t)n * sizeof *mine),
         *all = take_memory(3 * (size_t)n * sizeof *all);
  for (int b = 0; b < n; b++) {
    const struct Block* block = &w->mesh.blocks[b];
    double volume = 1.0 / (double)(1L << 3 * block->level), sum[3] = {0, 0, 0};
    for (int i = 0; is_leaf(w, b) && i < e * e * e; i++) {
      const double* u = block->data->now + cell_at(padded(e), i % e, i / e % e, i / e / e);
      double x = (block->at[0] * e + i % e + 0.5) / (double)(1 << block->level);
      double y = (block->at[1] * e + i / e % e + 0.5) / (double)(1 << block->level);
      sum[0] += u[0];
      sum[1] += u[4 * cells_of(e)];
      sum[2] += gas_error(&w->setting, x, y, w->time, u[0]);
    }
    for (int s = 0; s < 3; s++) mine[3 * b + s] = sum[s] * volume;
  }
  MPI_Allreduce(mine, all, 3 * n, MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);  // one of a block's terms is not 0
  sums[0] = sums[1] = sums[2] = 0;
  for (int b = 0; b < n; b++)
    for (int s = 0; s < 3; s++) sums[s] += all[3 * b + s];
  free(mine);
  free(all);
}

static uint64_t mix(uint64_t h, uint64_t value) {
  h = (h ^ value) * 0x9e3779b97f4a7c15u;
  h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
  return h ^ h >> 32;
}

enum View { view_plain, view_swapped, view_mirrored, view_count };

// A hash of all bits of all cells that no finer ones cover, with their places; as it is, with y and
// z exchanged, with y reversed. A sum, so it does not depend on who has which.
static void hashes_of(const struct World* w, uint64_t hash[view_count]) {
  static const int field_of[view_count][fields] = {
      {0, 1, 2, 3, 4}, {0, 1, 3, 2, 4}, {0, 1, 2, 3, 4}};
  int e = w->mesh.edge;
  uint64_t mine[view_count] = {0};
  for (int b = 0; b < w->mesh.count; b++)
    for (int i = 0; is_leaf(w, b) && i < e * e * e; i++) {
      const struct Block* block = &w->mesh.blocks[b];
      const double* u = block->data->now + cell_at(padded(e), i % e, i / e % e, i / e / e);
      int x = block->at[0] * e + i % e, y = block->at[1] * e + i / e % e,
          z = block->at[2] * e + i / e / e;
      for (int v = 0; v < view_count; v++) {
        int across = v == view_swapped    ? z
                     : v == view_mirrored ? w->setting.base_cells[1] * (1 << block->level) - 1 - y
                                          : y;
        uint64_t h = mix(mix(mix((uint64_t)block->level, (uint64_t)x), (uint64_t)across),
                         (uint64_t)(v == view_swapped ? y : z));
        for (int f = 0; f < fields; f++) {
          double value =
              u[(size_t)field_of[v][f] * cells_of(e)] * (v == view_mirrored && f == 2 ? -1 : 1) +
              0.0;
          uint64_t bits;
          memcpy(&bits, &value, sizeof bits);
          h = mix(h, bits);
        }
        mine[v] += h;
      }
    }
  MPI_Allreduce(mine, hash, view_count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

// ---- the run
// ----------------------------------------------------------------------------------------------
struct Run {
  double* seconds;  // of each measured iteration, of the slowest rank
  long measured;
  double mass, energy, error, mass_drift, energy_drift,
      imbalance;  // imbalance: mean over measured iterations
  uint64_t hash[view_count];
};

static void choose_step(struct World* w, double until) {
  double fastest = 0, all;
  for (int l = 0; l < w->mesh.levels; l++)
    for (int i = 0; i < w->level[l].own_count; i++) {
      double speed = gas_speed(w->mesh.edge, w->mesh.blocks[w->level[l].own[i]].data->now);
      if (speed > fastest) fastest = speed;
    }
  double start = MPI_Wtime();
  MPI_Allreduce(&fastest, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  w->account.reducing += MPI_Wtime() - start;
  w->dt = w->courant * w->width / all;
  if (until > 0 && w->time + w->dt > until) w->dt = until - w->time;
}

static void run(struct World* w, const struct Options* o, struct Run* r) {
  double before[3], after[3];
  double* mine = take_memory((size_t)o->iterations * sizeof *mine);
  r->seconds = take_memory((size_t)o->iterations * sizeof *r->seconds);
  sums_of(w, before);
  MPI_Barrier(MPI_COMM_WORLD);
  for (long i = 0; i < o->warmup + o->iterations && !(o->until > 0 && w->time >= o->until); i++) {
    if (i == o->warmup) {
      w->account = (struct Account){0};
      w->work = w->pace.late = 0;
    }
    double start = MPI_Wtime();
    if (i > 0 && i % o->regrid == 0) world_regrid(w);
    choose_step(w, o->until);
    world_step(w);
    if (i < o->warmup) continue;
    mine[r->measured++] = MPI_Wtime() - start;
    r->imbalance += w->mesh.imbalance;
  }
  if (r->measured) r->imbalance /= (double)r->measured;
  MPI_Allreduce(mine, r->seconds, (int)r->measured, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  sums_of(w, after);
  hashes_of(w, r->hash);
  r->mass = after[0];
  r->energy = after[1];
  r->mass_drift = after[0] / before[0] - 1;
  r->energy_drift = after[1] / before[1] - 1;
  r->error = after[2] / ((double)o->grid[0] * o->grid[1] * o->grid[2]);
  free(mine);
}

// ---- the result
// ------------------------------------------------------------------------------------------ Most
// and mean over the ranks.
static void print_over_ranks(const struct World* w, const char* name, double mine) {
  double most, sum;
  MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (w->rank == 0) printf("\"%s\":[%.9g,%.9g],", name, most, sum / w->ranks);
}

static void print_messages(const struct World* w, long measured) {
  const struct Account* a = &w->account;
  long least = a->smallest ? a->smallest : 1L << 62, all_least, all_most, all[sizes_kept], count,
       seen = 0, middle = 0;
  double bytes, half = 0;
  MPI_Reduce(&least, &all_least, 1, MPI_LONG, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&a->largest, &all_most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&a->messages, &count, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&a->bytes, &bytes, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(a->by_size, all, sizes_kept, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (w->rank) return;
  // The size at which half of all bytes are in smaller messages: what the exchange's time is made
  // of.
  for (int i = 0; i < sizes_kept; i++) {
    seen += all[i];
    half += (double)all[i] * exp2(i / 16.0);
    if (half >= bytes / 2 && !middle && seen) middle = (long)(exp2(i / 16.0) + 0.5);
  }
  if (middle > all_most) middle = all_most;  // a bucket's middle
  double each = measured ? (double)measured : 1;
  printf("\"messages\":%.9g,\"bytes\":%.9g,\"sizes\":[%ld,%ld,%ld],", (double)count / each,
         bytes / each, count ? all_least : 0, middle, all_most);
}

static void print_result(const struct World* w, const struct Options* o, const struct Run* r) {
  const struct Mesh* m = &w->mesh;
  double executing = 0;
  for (long i = 0; i < r->measured; i++) executing += r->seconds[i];
  if (w->rank == 0) {
    printf("@@{\"measure\":\"samr\",\"size\":%ld,\"unit\":\"s\",\"samples\":[",
           (long)o->grid[0] * o->grid[1] * o->grid[2]);
    for (long i = 0; i < r->measured; i++) printf("%s%.9g", i ? "," : "", r->seconds[i]);
    printf(
        "],\"extra\":{\"ranks\":%d,\"grid\":[%d,%d,%d],\"block\":%d,\"form\":\"%s\",\"iterations\":"
        "%ld,\"blocks\":[",
        w->ranks, o->grid[0], o->grid[1], o->grid[2], o->block, form_names[o->form], r->measured);
    for (int l = 0; l < m->levels; l++) printf("%s%d", l ? "," : "", m->first[l + 1] - m->first[l]);
    printf("],\"imbalance\":%.4f,\"execution\":%.9g,", r->imbalance, executing);
  }
  print_over_ranks(w, "communication", w->account.in_calls);
  print_over_ranks(w, "reducing", w->account.reducing);
  print_over_ranks(w, "regridding", w->account.regridding);
  print_over_ranks(w, "late", w->pace.late);
  print_over_ranks(w, "cells", w->work);
  print_messages(w, r->measured);
  if (w->rank) return;
  printf("\"time\":%.9g,\"mass\":%.17g,\"energy\":%.17g,\"mass_drift\":%.3g,\"energy_drift\":%.3g,",
         w->time, r->mass, r->energy, r->mass_drift, r->energy_drift);
  if (o->setting.problem != problem_rm) printf("\"error\":%.9g,", r->error);
  int swapped = o->grid[1] != o->grid[2] || r->hash[view_swapped] == r->hash[view_plain];
  printf("\"symmetric\":%s,\"checksum\":\"%016llx\"}}\n",
         swapped && r->hash[view_mirrored] == r->hash[view_plain] ? "true" : "false",
         (unsigned long long)r->hash[view_plain]);
  fflush(stdout);
}

static int work(const struct Options* o, int rank, int ranks) {
  struct World w = {.rank = rank,
                    .ranks = ranks,
                    .setting = o->setting,
                    .jump = o->jump,
                    .courant = 0.7,
                    .form = o->form,
                    .width = 1};
  struct Run r = {0};
  int base[3];
  const char* slower = getenv("CLUSTER_DILATION");  // the simulated cluster's own slowness
  double dilation = slower ? strtod(slower, NULL) : 1;
  for (int a = 0; a < 3; a++) base[a] = o->grid[a] / o->block;
  if (o->pace > 0) w.pace.of_cell = (dilation > 0 ? dilation : 1) * o->cycles / (o->pace * 1e6);
  world_begin(&w, base, o->block, o->levels);
  run(&w, o, &r);
  print_result(&w, o, &r);
  world_disconnect(&w);
  mesh_free(&w.mesh);
  free(r.seconds);
  double limit = 1e-12;
  int good = fabs(r.mass_drift) <= limit && fabs(r.energy_drift) <= limit;
  if (!good && rank == 0)
    fprintf(stderr, "samr: mass or energy changed by more than %g of it\n", limit);
  return good ? 0 : 1;
}

int main(int argc, char** argv) {
  struct Options options;
  const char* about[2] = {"", ""};
  int rank, ranks, result = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (!parse(argc, argv, &options, about)) {
    int known = strcmp(about[1], "is no option") != 0;
    if (rank == 0)
      fprintf(stderr, "samr: %s %s%s\n%s", about[0], known ? "wants " : "", about[1], usage);
    result = 2;
  } else if (options.help) {
    if (rank == 0) fputs(usage, stdout);
  } else {
    result = work(&options, rank, ranks);
  }
  MPI_Finalize();
  return result;
}
