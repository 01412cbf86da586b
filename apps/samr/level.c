// Steps of one level: ghosts from coarser levels and walls, fluxes between levels, the order of it
// all (Berger and Oliger's: two steps of a level for each of the next coarser one).
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "world.h"

// ---- pace
// ------------------------------------------------------------------------------------------
static void pace_begin(struct Pace* p) {
  if (p->of_cell > 0) p->deadline = MPI_Wtime();
}

static void pace_done(struct Pace* p, double cells) {
  if (p->of_cell <= 0) return;
  p->deadline += cells * p->of_cell;
  double left = p->deadline - MPI_Wtime();
  if (left < 100e-6) return;  // later: waking costs something, too
  struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
  nanosleep(&t, NULL);
}

static void pace_end(struct Pace* p) {
  if (p->of_cell <= 0) return;
  double left = p->deadline - MPI_Wtime();
  if (left < 0) p->late -= left;
  while (left > 0) {
    struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
    nanosleep(&t, NULL);
    left = p->deadline - MPI_Wtime();
  }
}

// ---- ghosts
// ---------------------------------------------------------------------------------------- The
// cells of a ghost region: those that lie in direction `step` of a block.
static void region(int edge, const int step[3], int from[3], int to[3]) {
  for (int a = 0; a < 3; a++) {
    from[a] = step[a] < 0 ? -ghosts : step[a] > 0 ? edge : 0;
    to[a] = step[a] < 0 ? 0 : step[a] > 0 ? edge + ghosts : edge;
  }
}

static size_t ghost_length(int edge, int part) {
  int step[3], from[3], to[3];
  steps_of(part, step);
  region(edge, step, from, to);
  return fields * (size_t)(to[0] - from[0]) * (size_t)(to[1] - from[1]) * (size_t)(to[2] - from[2]);
}

// Copies a region that is direction `part` of a block: out of its neighbour, or into it.
static size_t pack_ghost(const struct Mesh* m, const struct Piece* p, double* out) {
  int step[3], from[3], to[3], e = m->edge;
  const double* u = m->blocks[p->from].data->now;
  double* start = out;
  steps_of(p->part, step);
  region(e, step, from, to);
  for (int f = 0; f < fields; f++)
    for (int k = from[2]; k < to[2]; k++)
      for (int j = from[1]; j < to[1]; j++) {
        size_t c = cell_at(padded(e), from[0] - step[0] * e, j - step[1] * e, k - step[2] * e);
        size_t n = (size_t)(to[0] - from[0]);
        memcpy(out, u + (size_t)f * cells_of(e) + c, n * sizeof *out);
        out += n;
      }
  return (size_t)(out - start);
}

static size_t unpack_ghost(struct Mesh* m, const struct Piece* p, const double* in) {
  static double between[fields * ghosts * most_edge * most_edge];
  int step[3], from[3], to[3], e = m->edge;
  double* u = m->blocks[p->to].data->now;
  if (!in) {
    pack_ghost(m, p, between);
    in = between;
  }
  const double* start = in;
  steps_of(p->part, step);
  region(e, step, from, to);
  for (int f = 0; f < fields; f++)
    for (int k = from[2]; k < to[2]; k++)
      for (int j = from[1]; j < to[1]; j++) {
        size_t n = (size_t)(to[0] - from[0]);
        memcpy(u + (size_t)f * cells_of(e) + cell_at(padded(e), from[0], j, k), in, n * sizeof *in);
        in += n;
      }
  return (size_t)(in - start);
}

// Both ends of the tube are walls.
static void fill_walls(const struct Mesh* m, const struct Block* b) {
  int e = m->edge, p = padded(e), ends = m->base[0] << b->level;
  for (int f = 0; f < fields; f++)
    for (int k = -ghosts; k < e + ghosts; k++)
      for (int j = -ghosts; j < e + ghosts; j++)
        for (int g = 0; g < ghosts; g++) {
          double *u = b->data->now + (size_t)f * cells_of(e), sign = f == 1 ? -1 : 1;
          if (b->at[0] == 0) u[cell_at(p, -1 - g, j, k)] = sign * u[cell_at(p, g, j, k)];
          if (b->at[0] == ends - 1)
            u[cell_at(p, e + g, j, k)] = sign * u[cell_at(p, e - 1 - g, j, k)];
        }
}

void fill_from_parent(struct World* w, struct Block* b, const int from[3], const int to[3],
                      double share) {
  const struct Mesh* m = &w->mesh;
  const struct Data* parent = m->blocks[b->parent].data;
  int e = m->edge, p = padded(e), at[3];
  size_t stride[3] = {1, (size_t)p, (size_t)p * (size_t)p};
  for (int a = 0; a < 3; a++) at[a] = (b->at[a] & 1) * e / 2;
  for (int f = 0; f < fields; f++) {
    const double* is = parent->now + (size_t)f * cells_of(e);
    // What a block that has moved was before is not known, nor needed at the end of a step.
    const double* was = share < 1 ? parent->before + (size_t)f * cells_of(e) : is;
    double* u = b->data->now + (size_t)f * cells_of(e);
    for (int k = from[2]; k < to[2]; k++)
      for (int j = from[1]; j < to[1]; j++)
        for (int i = from[0]; i < to[0]; i++) {
          // Cell 2 n is the lower half of cell n of the parent, also below zero.
          size_t c = cell_at(p, at[0] + (i + e) / 2 - e / 2, at[1] + (j + e) / 2 - e / 2,
                             at[2] + (k + e) / 2 - e / 2);
          int upper[3] = {(i + e) & 1, (j + e) & 1, (k + e) & 1};
          double middle = was[c] + share * (is[c] - was[c]), part[3];
          for (int a = 0; a < 3; a++) {
            size_t s = stride[a];
            double below = was[c - s] + share * (is[c - s] - was[c - s]);
            double above = was[c + s] + share * (is[c + s] - was[c + s]);
            part[a] = (upper[a] ? 0.25 : -0.25) * minmod(middle - below, above - middle);
          }
          u[cell_at(p, i, j, k)] = middle + (part[0] + (part[1] + part[2]));
        }
  }
}

void fill_beside(struct World* w, struct Block* b, double share) {
  for (int d = 0; d < directions && b->level > 0; d++) {
    int step[3], at[3], from[3], to[3];
    steps_of(d, step);
    for (int a = 0; a < 3; a++) at[a] = b->at[a] + step[a];
    if (at[0] < 0 || at[0] >= w->mesh.base[0] << b->level || mesh_find(&w->mesh, b->level, at) >= 0)
      continue;
    region(w->mesh.edge, step, from, to);
    fill_from_parent(w, b, from, to, share);
  }
  fill_walls(&w->mesh, b);
}

// ---- fluxes between levels
// --------------------------------------------------------------------------- Plan: part is face *
// 4 + quarter; the face is that of the coarse block.
static size_t flux_length(int edge, int part) {
  (void)part;
  return fields * (size_t)(edge / 2) * (size_t)(edge / 2);
}

static size_t pack_flux(const struct Mesh* m, const struct Piece* p, double* out) {
  size_t n = flux_length(m->edge, 0);
  memcpy(out, m->blocks[p->from].data->fine_flux[p->part / 4 ^ 1], n * sizeof *out);
  return n;
}

// What remains there is the difference.
static size_t unpack_flux(struct Mesh* m, const struct Piece* p, const double* in) {
  int e = m->edge, h = e / 2, quarter = p->part % 4;
  double* kept = m->blocks[p->to].data->coarse_flux[p->part / 4];
  if (!in) in = m->blocks[p->from].data->fine_flux[p->part / 4 ^ 1];
  for (int f = 0; f < fields; f++)
    for (int b = 0; b < h; b++)
      for (int a = 0; a < h; a++) {
        double* at = &kept[(f * e + b + quarter / 2 * h) * e + a + quarter % 2 * h];
        *at = in[(f * h + b) * h + a] - *at;
      }
  return flux_length(e, 0);
}

// First cell along the two axes of a face, and how to go from there.
static size_t on_face(int edge, int face, int inside, size_t step[2]) {
  int p = padded(edge), axis = face / 2, at[3] = {0, 0, 0}, n = 0;
  size_t stride[3] = {1, (size_t)p, (size_t)p * (size_t)p};
  at[axis] = face % 2 ? edge - 1 : inside ? 0 : -1;
  for (int a = 0; a < 3; a++)
    if (a != axis) step[n++] = stride[a];
  return cell_at(p, at[0], at[1], at[2]);
}

static void keep_fluxes(int e, struct Data* d, const struct Fluxes* fluxes, int substep) {
  int h = e / 2;
  for (int face = 0; face < face_count; face++) {
    size_t step[2], c = on_face(e, face, 0, step);
    for (int f = 0; f < fields; f++) {
      const double* flux = fluxes->of[face / 2][f] + c;
      for (int b = 0; d->coarse_flux[face] && b < e; b++)
        for (int a = 0; a < e; a++)
          d->coarse_flux[face][(f * e + b) * e + a] =
              flux[(size_t)a * step[0] + (size_t)b * step[1]];
      for (int b = 0; d->fine_flux[face] && b < h; b++)
        for (int a = 0; a < h; a++) {
          const double* q = flux + (size_t)(2 * a) * step[0] + (size_t)(2 * b) * step[1];
          double mean = 0.25 * ((q[0] + q[step[0] + step[1]]) + (q[step[0]] + q[step[1]]));
          double* sum = &d->fine_flux[face][(f * h + b) * h + a];
          *sum = substep ? *sum + 0.5 * mean : 0.5 * mean;
        }
    }
  }
}

// Puts the difference between fine and coarse fluxes into the cells at the border. Along x, and
// along y and z, apart: sums must not depend on which comes first.
static void correct(struct World* w, struct Block* b) {
  static double sums[2][fields * most_edge * most_edge * most_edge];
  int e = w->mesh.edge, any = 0;
  double dt_dx = w->dt / w->width;
  for (int face = 0; face < face_count; face++) any |= b->data->coarse_flux[face] != NULL;
  if (!any) return;
  memset(sums, 0, sizeof sums);
  for (int face = 0; face < face_count; face++) {
    const double* change = b->data->coarse_flux[face];
    int axis = face / 2, n = 0, stride[3] = {1, e, e * e}, step[2];
    for (int a = 0; a < 3; a++)
      if (a != axis) step[n++] = stride[a];
    for (int i = 0; change && i < fields * e * e; i++) {
      int f = i / (e * e),
          cell = i % e * step[0] + i / e % e * step[1] + (face % 2 ? (e - 1) * stride[axis] : 0);
      sums[axis > 0][f * e * e * e + cell] += (face % 2 ? -dt_dx : dt_dx) * change[i];
    }
  }
  for (int f = 0; f < fields; f++)
    for (int i = 0; i < e * e * e; i++) {
      double* u =
          &b->data->now[(size_t)f * cells_of(e) + cell_at(padded(e), i % e, i / e % e, i / e / e)];
      *u += sums[0][f * e * e * e + i] + sums[1][f * e * e * e + i];
    }
}

// A refined block's cells are the means of its children's.
static void restrict_block(struct World* w, const struct Block* b) {
  int e = w->mesh.edge, p = padded(e);
  size_t y = (size_t)p, z = (size_t)p * (size_t)p;
  for (int c = 0; c < children; c++) {
    const double* fine = w->mesh.blocks[b->child + c].data->now;
    int at[3] = {(c & 1) * e / 2, (c >> 1 & 1) * e / 2, (c >> 2) * e / 2};
    for (int f = 0; f < fields; f++)
      for (int k = 0; k < e / 2; k++)
        for (int j = 0; j < e / 2; j++)
          for (int i = 0; i < e / 2; i++) {
            const double* q = fine + (size_t)f * cells_of(e) + cell_at(p, 2 * i, 2 * j, 2 * k);
            double a = (q[0] + q[1]) + (q[y + z] + q[y + z + 1]),
                   d = (q[y] + q[y + 1]) + (q[z] + q[z + 1]);
            b->data->now[(size_t)f * cells_of(e) + cell_at(p, at[0] + i, at[1] + j, at[2] + k)] =
                0.125 * (a + d);
          }
  }
}

// ---- plans
// ---------------------------------------------------------------------------------------------
static void add_piece(struct World* w, struct Plan* p, struct Piece piece) {
  int to = w->mesh.blocks[piece.to].owner == w->rank,
      from = w->mesh.blocks[piece.from].owner == w->rank;
  piece.peer = w->mesh.blocks[to ? piece.from : piece.to].owner;
  if (to && from)
    plan_add_local(p, piece);
  else if (to)
    plan_add_in(p, piece);
  else
    plan_add_out(p, piece);
}

static void plan_ghosts(struct World* w, struct Plan* p, int i) {
  const struct Block* b = &w->mesh.blocks[i];
  for (int d = 0; d < directions; d++) {
    int step[3], at[3];
    steps_of(d, step);
    for (int a = 0; a < 3; a++) at[a] = b->at[a] + step[a];
    int other = d == directions / 2 ? -1 : mesh_find(&w->mesh, b->level, at);
    if (other < 0) continue;
    add_piece(w, p, (struct Piece){.to = i, .part = d, .from = other});
    if (w->mesh.blocks[other].owner != w->rank)
      add_piece(w, p, (struct Piece){.to = other, .part = directions - 1 - d, .from = i});
  }
}

// The child that lies at a quarter of that face of a refined block.
static int child_at_face(const struct Block* b, int face, int quarter) {
  int axis = face / 2, n = 0, place[3] = {0, 0, 0};
  for (int a = 0; a < 3; a++)
    if (a != axis) place[a] = quarter >> n++ & 1;
  place[axis] = face % 2;
  return b->child + child_at(place);
}

// Of block i: what it gives to coarser neighbours of its parent's level, and what it gets from
// finer ones.
static void plan_fluxes(struct World* w, struct Plan* p, int i) {
  struct Block* b = &w->mesh.blocks[i];
  size_t whole = fields * (size_t)(w->mesh.edge * w->mesh.edge);
  for (int face = 0; face < face_count; face++) {
    int at[3];
    next_to(b->at, face, at);
    int other = mesh_find(&w->mesh, b->level, at);
    if (other < 0 || (b->child < 0) == (w->mesh.blocks[other].child < 0)) continue;
    if (b->child < 0) b->data->coarse_flux[face] = take_memory(whole * sizeof(double));
    for (int q = 0; q < 4; q++) {
      int fine = child_at_face(b->child < 0 ? &w->mesh.blocks[other] : b,
                               b->child < 0 ? face ^ 1 : face, q);
      if (b->child >= 0)
        w->mesh.blocks[fine].data->fine_flux[face] = take_memory(whole / 4 * sizeof(double));
      struct Piece piece = {.to = b->child < 0 ? i : other,
                            .part = (b->child < 0 ? face : face ^ 1) * 4 + q,
                            .from = fine};
      if (b->child < 0 || w->mesh.blocks[other].owner != w->rank) add_piece(w, p, piece);
    }
  }
}

// Blocks that others need come first.
static void order_own(struct World* w, struct Level* level) {
  unsigned char* needed = take_memory((size_t)w->mesh.count);
  int *sorted = take_memory((size_t)level->own_count * sizeof *sorted), n = 0;
  for (int i = 0; i < level->ghosts.out_count; i++) needed[level->ghosts.out[i].from] = 1;
  for (int i = 0; i < level->own_count; i++)
    if (needed[level->own[i]]) sorted[n++] = level->own[i];
  level->needed = n;
  for (int i = 0; i < level->own_count; i++)
    if (!needed[level->own[i]]) sorted[n++] = level->own[i];
  free(level->own);
  free(needed);
  level->own = sorted;
}

void world_connect(struct World* w) {
  for (int l = 0; l < w->mesh.levels; l++) {
    struct Level* level = &w->level[l];
    int from = w->mesh.first[l], to = w->mesh.first[l + 1];
    level->own = take_memory((size_t)(to - from) * sizeof *level->own);
    for (int i = from; i < to; i++)
      if (w->mesh.blocks[i].owner == w->rank) level->own[level->own_count++] = i;
    for (int i = 0; i < level->own_count; i++) {
      plan_ghosts(w, &level->ghosts, level->own[i]);
      plan_fluxes(w, &level->fluxes, level->own[i]);
    }
    level->ghosts.pack = pack_ghost;
    level->ghosts.unpack = unpack_ghost;
    plan_end(&level->ghosts, w->mesh.edge, ghost_length);
    level->fluxes.pack = pack_flux;
    level->fluxes.unpack = unpack_flux;
    plan_end(&level->fluxes, w->mesh.edge, flux_length);
    order_own(w, level);
  }
  struct Account apart = {0};
  for (int l = 0; l < w->mesh.levels; l++) {
    exchange(&w->mesh, &w->level[l].ghosts, form_13, (struct Work){0}, &apart);
    for (int i = 0; i < w->level[l].own_count; i++)
      fill_beside(w, &w->mesh.blocks[w->level[l].own[i]], 1);
  }
}

void world_disconnect(struct World* w) {
  for (int l = 0; l < w->mesh.levels; l++) {
    plan_free(&w->level[l].ghosts);
    plan_free(&w->level[l].fluxes);
    free(w->level[l].own);
    memset(&w->level[l], 0, sizeof w->level[l]);
  }
}

// ---- steps
// -----------------------------------------------------------------------------------------------
struct Step {
  struct World* w;
  int level, substep;
};

static void step_blocks(void* of, int part) {
  const struct Step* s = of;
  struct World* w = s->w;
  const struct Level* level = &w->level[s->level];
  int half = level->needed + (level->own_count - level->needed + 1) / 2;
  int from = part == 0 ? 0 : part == 1 ? level->needed : half;
  int to = part == 0 ? level->needed : part == 1 ? half : level->own_count, e = w->mesh.edge;
  struct Fluxes fluxes;
  pace_begin(&w->pace);
  for (int i = from; i < to; i++) {
    struct Block* b = &w->mesh.blocks[level->own[i]];
    fill_beside(w, b, 0.5 * s->substep);
    gas_step(e, b->data->now, b->data->before, w->dt / w->width, &fluxes);
    double* next = b->data->before;
    b->data->before = b->data->now;
    b->data->now = next;
    keep_fluxes(e, b->data, &fluxes, s->substep);
    w->work += e * e * e;
    pace_done(&w->pace, e * e * e);
  }
  pace_end(&w->pace);
}

static void restrict_blocks(void* of, int part) {
  const struct Step* s = of;
  const struct Level* level = &s->w->level[s->level];
  for (int i = 0; part == 0 && i < level->own_count; i++) {
    const struct Block* b = &s->w->mesh.blocks[level->own[i]];
    if (b->child >= 0) restrict_block(s->w, b);
  }
}

static void correct_blocks(void* of, int part) {
  const struct Step* s = of;
  const struct Level* level = &s->w->level[s->level];
  for (int i = 0; part == 0 && i < level->own_count; i++)
    correct(s->w, &s->w->mesh.blocks[level->own[i]]);
}

static void exchange_ghosts(struct World* w, int l, struct Work work) {
  exchange(&w->mesh, &w->level[l].ghosts, w->form, work, &w->account);
  for (int i = 0; i < w->level[l].own_count; i++)
    fill_walls(&w->mesh, &w->mesh.blocks[w->level[l].own[i]]);
}

static void step_level(struct World* w, int l, int substep) {
  struct Step s = {w, l, substep};
  exchange_ghosts(w, l, (struct Work){step_blocks, &s});
  if (l + 1 >= most_levels || w->mesh.first[l + 1] == w->mesh.first[l + 2]) return;
  step_level(w, l + 1, 0);
  step_level(w, l + 1, 1);
  exchange(&w->mesh, &w->level[l].fluxes, w->form, (struct Work){restrict_blocks, &s}, &w->account);
  exchange_ghosts(w, l, (struct Work){correct_blocks, &s});
}

void world_step(struct World* w) {
  step_level(w, 0, 0);
  w->time += w->dt;
}
