// The mesh: a tree of blocks of equal numbers of cells, known whole to every rank; each rank has
// the cells of its own. Owner: its rank's one thread.
//
// Level 0 covers the tube; a block that is refined has eight children of half its width.
// Invariants: blocks of a level lie together in the order of the curve, a block's children one
// behind the other; next to (26 ways) a block of level l + 1's parent there are blocks of level l
// everywhere; a block lies on its parent's rank, so that levels exchange nothing but fluxes across
// the border between ranks.
#pragma once

#include <mpi.h>
#include <stdint.h>

#include "gas.h"

enum { most_levels = 4, children = 8, directions = 27, face_count = 6 };

struct Data {
  double *now, *before;             // with ghosts
  double* coarse_flux[face_count];  // through faces behind which the neighbour is refined
  double* fine_flux[face_count];    // through faces behind which there is no block: sums for the
                                    // parent's neighbour
};

struct Block {
  int level, at[3];   // in blocks of its level
  int parent, child;  // index, of the first child; or -1
  int owner;
  struct Data* data;  // of own blocks
};

struct Mesh {
  int base[3], edge, levels;  // blocks of level 0, cells a side of a block
  struct Block* blocks;
  int count, first[most_levels + 1];  // of each level
  int* of_place;                      // level 0 by place
  double imbalance;                   // most work of a rank by the mean
};

void* take_memory(size_t bytes);  // zeroed; ends the job where there is none

// Level 0 alone, in the order of a Hilbert curve.
void mesh_begin(struct Mesh* m, const int base[3], int edge, int levels);
// A mesh of the same level 0 in which those blocks of `old` that `refine` names (by index) have
// children.
void mesh_refined(struct Mesh* m, const struct Mesh* old, const unsigned char* refine);
void mesh_free(struct Mesh* m);  // and all data
// The block of that place, which may lie beyond the ends of y and z (they are joined); -1 if there
// is none.
int mesh_find(const struct Mesh* m, int level, const int at[3]);
// Cuts the curve into pieces for the ranks, so that the largest sum of work is least.
void mesh_share(struct Mesh* m, int ranks);

struct Data* data_new(int edge);
void data_free(struct Data* d);

static inline int child_at(const int cell[3]) {
  return (cell[0] & 1) + 2 * (cell[1] & 1) + 4 * (cell[2] & 1);
}
// Direction d as steps of -1, 0 or 1; 13 is none, and 26 - d the opposite one.
static inline void steps_of(int d, int step[3]) {
  step[0] = d % 3 - 1;
  step[1] = d / 3 % 3 - 1;
  step[2] = d / 9 - 1;
}
// Face f: axis f / 2, lower end 0 or upper end 1; f ^ 1 is the opposite one.
static inline void next_to(const int at[3], int face, int found[3]) {
  for (int a = 0; a < 3; a++) found[a] = at[a];
  found[face / 2] += face % 2 ? 1 : -1;
}
