// The tree of blocks, the curve through it, and who has which.
#include "mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void* take_memory(size_t bytes) {
  void* p = calloc(1, bytes ? bytes : 1);
  if (p) return p;
  fprintf(stderr, "samr: no memory for %zu bytes\n", bytes);
  MPI_Abort(MPI_COMM_WORLD, 3);
  exit(3);
}

struct Data* data_new(int edge) {
  struct Data* d = take_memory(sizeof *d);
  d->now = take_memory(fields * cells_of(edge) * sizeof(double));
  d->before = take_memory(fields * cells_of(edge) * sizeof(double));
  return d;
}

void data_free(struct Data* d) {
  if (!d) return;
  for (int f = 0; f < face_count; f++) {
    free(d->coarse_flux[f]);
    free(d->fine_flux[f]);
  }
  free(d->now);
  free(d->before);
  free(d);
}

// ---- the curve
// ----------------------------------------------------------------------------------- Place on
// Hilbert's curve through a cube of 2^bits blocks a side (Skilling's transposition).
static uint64_t hilbert(const int at[3], int bits) {
  uint32_t x[3] = {(uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]}, top = 1u << (bits - 1);
  for (uint32_t q = top; q > 1; q >>= 1)
    for (int i = 0; i < 3; i++) {
      if (x[i] & q) {
        x[0] ^= q - 1;
      } else {
        uint32_t t = (x[0] ^ x[i]) & (q - 1);
        x[0] ^= t;
        x[i] ^= t;
      }
    }
  for (int i = 1; i < 3; i++) x[i] ^= x[i - 1];
  uint32_t turn = 0;
  for (uint32_t q = top; q > 1; q >>= 1)
    if (x[2] & q) turn ^= q - 1;
  uint64_t place = 0;
  for (int b = bits - 1; b >= 0; b--)
    for (int i = 0; i < 3; i++) place = place << 1 | (((x[i] ^ turn) >> b) & 1);
  return place;
}

struct Place {
  uint64_t on_curve;
  int at[3];
};

static int by_curve(const void* a, const void* b) {
  uint64_t x = ((const struct Place*)a)->on_curve, y = ((const struct Place*)b)->on_curve;
  return (x > y) - (x < y);
}

static int place_number(const struct Mesh* m, const int at[3]) {
  return at[0] + m->base[0] * (at[1] + m->base[1] * at[2]);
}

void mesh_begin(struct Mesh* m, const int base[3], int edge, int levels) {
  memset(m, 0, sizeof *m);
  int bits = 1, n = base[0] * base[1] * base[2];
  for (int a = 0; a < 3; a++) {
    m->base[a] = base[a];
    while (1 << bits < base[a]) bits++;
  }
  m->edge = edge;
  m->levels = levels;
  m->blocks = take_memory((size_t)n * sizeof *m->blocks);
  m->of_place = take_memory((size_t)n * sizeof *m->of_place);
  struct Place* places = take_memory((size_t)n * sizeof *places);
  for (int i = 0; i < n; i++) {
    int* at = places[i].at;
    at[0] = i % base[0];
    at[1] = i / base[0] % base[1];
    at[2] = i / base[0] / base[1];
    places[i].on_curve = hilbert(at, bits);
  }
  qsort(places, (size_t)n, sizeof *places, by_curve);
  for (int i = 0; i < n; i++) {
    struct Block* b = &m->blocks[i];
    memcpy(b->at, places[i].at, sizeof b->at);
    b->parent = b->child = -1;
    m->of_place[place_number(m, b->at)] = i;
  }
  free(places);
  m->count = n;
  for (int l = 1; l <= most_levels; l++) m->first[l] = n;
}

// ---- the tree
// --------------------------------------------------------------------------------------
int mesh_find(const struct Mesh* m, int level, const int at[3]) {
  int place[3] = {at[0], at[1], at[2]}, top[3];
  if (place[0] < 0 || place[0] >= m->base[0] << level) return -1;
  for (int a = 1; a < 3; a++) {
    int n = m->base[a] << level;
    place[a] = (place[a] % n + n) % n;
  }
  for (int a = 0; a < 3; a++) top[a] = place[a] >> level;
  int found = m->of_place[place_number(m, top)];
  for (int l = level - 1; l >= 0 && found >= 0; l--) {
    int half[3] = {place[0] >> l, place[1] >> l, place[2] >> l};
    found = m->blocks[found].child < 0 ? -1 : m->blocks[found].child + child_at(half);
  }
  return found;
}

// Whether the block of `old` at that place is to have children.
static int is_refined(const struct Mesh* old, const unsigned char* refine, const struct Block* b) {
  int was = mesh_find(old, b->level, b->at);
  return was >= 0 && refine[was] && b->level + 1 < old->levels;
}

void mesh_refined(struct Mesh* m, const struct Mesh* old, const unsigned char* refine) {
  mesh_begin(m, old->base, old->edge, old->levels);
  for (int l = 0; l + 1 < m->levels; l++) {
    int from = m->first[l], to = m->first[l + 1], more = 0;
    for (int i = from; i < to; i++) more += children * is_refined(old, refine, &m->blocks[i]);
    struct Block* grown = realloc(m->blocks, (size_t)(to + more) * sizeof *grown);
    if (!grown) MPI_Abort(MPI_COMM_WORLD, 3);
    m->blocks = grown;
    for (int i = from; i < to; i++) {
      if (!is_refined(old, refine, &m->blocks[i])) continue;
      m->blocks[i].child = m->count;
      for (int c = 0; c < children; c++) {
        struct Block* b = &m->blocks[m->count++];
        const int* at = m->blocks[i].at;
        memset(b, 0, sizeof *b);
        b->level = l + 1;
        b->at[0] = 2 * at[0] + (c & 1);
        b->at[1] = 2 * at[1] + (c >> 1 & 1);
        b->at[2] = 2 * at[2] + (c >> 2);
        b->parent = i;
        b->child = -1;
      }
    }
    for (int k = l + 2; k <= most_levels; k++) m->first[k] = m->count;
  }
}

void mesh_free(struct Mesh* m) {
  for (int i = 0; i < m->count; i++) data_free(m->blocks[i].data);
  free(m->blocks);
  free(m->of_place);
  memset(m, 0, sizeof *m);
}

// ---- who has which
// ----------------------------------------------------------------------------------- Work of a
// block of level 0 with all below it: a block of level l takes 2^l steps.
static long work_below(const struct Mesh* m, int i) {
  const struct Block* b = &m->blocks[i];
  long sum = 1L << b->level;
  for (int c = 0; b->child >= 0 && c < children; c++) sum += work_below(m, b->child + c);
  return sum;
}

// Whether pieces of that much work at most are enough; each rank gets a block if there are enough.
static int cut(const long* work, int n, int ranks, long most, int* owner) {
  int rank = 0;
  long sum = 0;
  for (int i = 0; i < n; i++) {
    int must = n - i <= ranks - 1 - rank &&
               i > 0;  // what is left is one block for each rank that has none
    if (sum > 0 && (sum + work[i] > most || must)) {
      if (++rank == ranks) return 0;
      sum = 0;
    }
    sum += work[i];
    if (sum > most) return 0;
    owner[i] = rank;
  }
  return 1;
}

void mesh_share(struct Mesh* m, int ranks) {
  int n = m->first[1];
  long *work = take_memory((size_t)n * sizeof *work), total = 0, low = 0;
  int* owner = take_memory((size_t)n * sizeof *owner);
  for (int i = 0; i < n; i++) total += work[i] = work_below(m, i);
  long high = total;
  while (low + 1 < high) {
    long middle = low + (high - low) / 2;
    if (cut(work, n, ranks, middle, owner))
      high = middle;
    else
      low = middle;
  }
  cut(work, n, ranks, high, owner);
  for (int i = 0; i < m->count; i++)
    m->blocks[i].owner = i < n ? owner[i] : m->blocks[m->blocks[i].parent].owner;
  m->imbalance = (double)high * ranks / (double)total;
  free(work);
  free(owner);
}
