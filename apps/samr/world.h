// What one rank has of the computation, and its steps. Owner: the rank's one thread.
#pragma once

#include "exchange.h"

// Old processors: after each block a rank sleeps until that one would have been done. 0: full
// speed.
struct Pace {
  double of_cell, deadline, late;
};

struct Level {
  struct Plan ghosts, fluxes;  // fluxes: from the next finer level
  int* own;                    // blocks of this rank: first those that others need
  int own_count, needed;
};

struct World {
  int rank, ranks;
  struct Setting setting;
  double jump, courant;  // of density, from cell to cell: a block that has it is refined
  enum Form form;
  struct Mesh mesh;
  struct Level level[most_levels];
  struct Account account;
  struct Pace pace;
  double time, dt, width;  // width: of a cell of level 0
  double work;             // cells that were stepped
};

// Plans for the mesh as it is, and storage for fluxes; all ghosts are filled.
void world_connect(struct World* w);
void world_disconnect(struct World* w);
// Time steps of all levels, of dt on level 0.
void world_step(struct World* w);
// What lies beside a block: beyond the tube's ends, and where there is a coarser level alone (its
// state at that share of its last step).
void fill_beside(struct World* w, struct Block* b, double share);
// Cells `from` to `to` of a block, from its parent.
void fill_from_parent(struct World* w, struct Block* b, const int from[3], const int to[3],
                      double share);

// The first mesh, and a new one for what the gas has become.
void world_begin(struct World* w, const int base[3], int edge, int levels);
void world_regrid(struct World* w);
