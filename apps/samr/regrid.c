// A new mesh for what the gas has become: which blocks are refined, and their way to their new
// ranks.
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum { tag_move = 6 };

// ---- which blocks are refined
// ------------------------------------------------------------------------ By all ranks alike: a
// byte for each block of the mesh, from what each found in its own.
static unsigned char* gather_jumps(struct World* w) {
  const struct Mesh* m = &w->mesh;
  unsigned char *mine = take_memory((size_t)m->count), *all = take_memory((size_t)m->count);
  for (int i = 0; i < m->count; i++)
    if (m->blocks[i].data)
      mine[i] = (unsigned char)gas_jumps(m->edge, m->blocks[i].data->now, w->jump);
  MPI_Allreduce(mine, all, m->count, MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
  free(mine);
  return all;
}

// A block's children may have children only if all around it there are blocks of its own level:
// those that are missing are made.
static void surround(const struct Mesh* m, unsigned char* refine, const struct Block* b) {
  for (int d = 0; d < directions; d++) {
    int step[3], at[3];
    steps_of(d, step);
    for (int a = 0; a < 3; a++) at[a] = b->at[a] + step[a];
    if (at[0] < 0 || at[0] >= m->base[0] << b->level) continue;
    // Its parent's place: one level up.
    for (int a = 1; a < 3; a++) {
      int n = m->base[a] << b->level;
      at[a] = (at[a] % n + n) % n;
    }
    for (int a = 0; a < 3; a++) at[a] >>= 1;
    int parent = mesh_find(m, b->level - 1, at);
    if (parent >= 0) refine[parent] = 1;
  }
}

static unsigned char* choose(struct World* w) {
  const struct Mesh* m = &w->mesh;
  unsigned char* refine = gather_jumps(w);
  for (int l = m->levels - 1; l > 0; l--)
    for (int i = m->first[l]; i < m->first[l + 1]; i++)
      if (refine[i]) {
        refine[m->blocks[i].parent] = 1;
        if (l + 1 < m->levels) surround(m, refine, &m->blocks[i]);
      }
  return refine;
}

// ---- moving
// ------------------------------------------------------------------------------------------
static size_t moved_length(int edge, int part) {
  (void)part;
  return fields * (size_t)edge * (size_t)edge * (size_t)edge;
}

static size_t pack_block(const struct Mesh* m, const struct Piece* p, double* out) {
  int e = m->edge;
  for (int f = 0; f < fields; f++)
    for (int k = 0; k < e; k++)
      for (int j = 0; j < e; j++, out += e)
        memcpy(out,
               m->blocks[p->from].data->now + (size_t)f * cells_of(e) + cell_at(padded(e), 0, j, k),
               (size_t)e * sizeof *out);
  return moved_length(e, 0);
}

static size_t unpack_block(struct Mesh* m, const struct Piece* p, const double* in) {
  int e = m->edge;
  for (int f = 0; f < fields; f++)
    for (int k = 0; k < e; k++)
      for (int j = 0; j < e; j++, in += e)
        memcpy(m->blocks[p->to].data->now + (size_t)f * cells_of(e) + cell_at(padded(e), 0, j, k),
               in, (size_t)e * sizeof *in);
  return moved_length(e, 0);
}

// The cells of block i of the new mesh on the rank that can make them.
static struct Data* made(struct World* w, struct Mesh* next, int i, int was) {
  int none[3] = {0, 0, 0}, e = next->edge, all[3] = {e, e, e};
  struct Block b = next->blocks[i];
  if (was >= 0) {
    struct Data* d = w->mesh.blocks[was].data;
    w->mesh.blocks[was].data = NULL;
    for (int f = 0; f < face_count; f++) {
      free(d->coarse_flux[f]);
      free(d->fine_flux[f]);
      d->coarse_flux[f] = d->fine_flux[f] = NULL;
    }
    return d;
  }
  int half[3] = {b.at[0] >> 1, b.at[1] >> 1, b.at[2] >> 1};
  b.parent = mesh_find(&w->mesh, b.level - 1, half);
  b.data = data_new(e);
  fill_from_parent(w, &b, none, all, 1);
  return b.data;
}

// Finest first: a parent's cells go only when its children have been made of them.
static void move(struct World* w, struct Mesh* next) {
  struct Plan plan = {.pack = pack_block, .unpack = unpack_block};
  struct Account apart = {0};
  for (int i = next->count - 1; i >= 0; i--) {
    struct Block* b = &next->blocks[i];
    int half[3] = {b->at[0] >> 1, b->at[1] >> 1, b->at[2] >> 1};
    int was = mesh_find(&w->mesh, b->level, b->at);
    int from = w->mesh.blocks[was >= 0 ? was : mesh_find(&w->mesh, b->level - 1, half)].owner;
    if (from == w->rank) b->data = made(w, next, i, was);
    if (from == b->owner) continue;
    struct Piece piece = {.to = i, .from = i};
    if (from == w->rank) {
      piece.peer = b->owner;
      plan_add_out(&plan, piece);
    } else if (b->owner == w->rank) {
      piece.peer = from;
      plan_add_in(&plan, piece);
      b->data = data_new(next->edge);
    }
  }
  plan_end(&plan, next->edge, moved_length);
  exchange(next, &plan, form_13, (struct Work){0}, &apart);
  plan_free(&plan);
  for (int i = 0; i < next->count; i++)
    if (next->blocks[i].data && next->blocks[i].owner != w->rank) {
      data_free(next->blocks[i].data);
      next->blocks[i].data = NULL;
    }
}

void world_regrid(struct World* w) {
  double start = MPI_Wtime();
  struct Mesh next;
  for (int l = 0; l < w->mesh.levels; l++)
    for (int i = 0; i < w->level[l].own_count; i++)
      fill_beside(w, &w->mesh.blocks[w->level[l].own[i]], 1);
  unsigned char* refine = choose(w);
  mesh_refined(&next, &w->mesh, refine);
  mesh_share(&next, w->ranks);
  free(refine);
  move(w, &next);
  world_disconnect(w);
  mesh_free(&w->mesh);
  w->mesh = next;
  world_connect(w);
  w->account.regridding += MPI_Wtime() - start;
}

// ---- the first mesh
// ------------------------------------------------------------------------------------
static void set_initial(struct World* w) {
  struct Mesh* m = &w->mesh;
  int e = m->edge;
  for (int b = 0; b < m->count; b++) {
    struct Block* block = &m->blocks[b];
    if (block->owner != w->rank) continue;
    block->data = data_new(e);
    for (int i = 0; i < e * e * e; i++) {
      int in[3] = {i % e, i / e % e, i / e / e}, cell[3];
      double state[fields];
      for (int a = 0; a < 3; a++) cell[a] = block->at[a] * e + in[a];
      gas_initial(&w->setting, block->level, cell, state);
      for (int f = 0; f < fields; f++)
        block->data->now[(size_t)f * cells_of(e) + cell_at(padded(e), in[0], in[1], in[2])] =
            state[f];
    }
  }
}

// Each level is seen first when the next coarser one is there.
void world_begin(struct World* w, const int base[3], int edge, int levels) {
  mesh_begin(&w->mesh, base, edge, levels);
  mesh_share(&w->mesh, w->ranks);
  set_initial(w);
  world_connect(w);
  for (int l = 1; l < levels; l++) {
    struct Mesh next;
    unsigned char* refine = choose(w);
    mesh_refined(&next, &w->mesh, refine);
    mesh_share(&next, w->ranks);
    free(refine);
    world_disconnect(w);
    mesh_free(&w->mesh);
    w->mesh = next;
    set_initial(w);
    world_connect(w);
  }
}
