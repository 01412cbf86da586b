// A compressible gas: Euler's equations in three dimensions for blocks of cells, and the problems
// that are set. Plain C, no MPI. Owner of what it works on: the caller; one thread.
//
// A block is an array [5][m][m][m], m = edge + 2 * ghosts, x fastest: density, momentum along x, y
// and z, energy, each per volume. Invariant: results do not depend on which of y and z is which,
// nor on which end of y or z is the first one, to the last bit: sums of their parts are written as
// x + (y + z).
#pragma once

#include <stddef.h>

enum { fields = 5, ghosts = 2, most_edge = 16 };

// Cells a side with ghosts, and in all.
static inline int padded(int edge) { return edge + 2 * ghosts; }
static inline size_t cells_of(int edge) {
  size_t m = (size_t)padded(edge);
  return m * m * m;
}
// Of cell (i, j, k), each from -ghosts.
static inline size_t cell_at(int m, int i, int j, int k) {
  return (size_t)(i + ghosts) +
         (size_t)m * ((size_t)(j + ghosts) + (size_t)m * (size_t)(k + ghosts));
}

enum Problem { problem_rm, problem_tube, problem_ramp };

struct Setting {
  enum Problem problem;
  double mach;        // of the shock
  double step;        // density behind the interface; it is 1 before it
  int base_cells[3];  // of level 0
};

// Fluxes through the faces of a block, once gas_step has filled them: [axis][field][cell], at the
// cell below the face.
struct Fluxes {
  double* of[3][fields];
};

// One step: `now` without and `next` with the change. `dt_dx`: time step by width of a cell.
void gas_step(int edge, const double* now, double* next, double dt_dx, struct Fluxes* fluxes);
// Largest sum of |u| + c over the three axes.
double gas_speed(int edge, const double* now);
// Whether density jumps by more than that share from cell to cell, in a block or right beside it.
int gas_jumps(int edge, const double* now, double share);

// The initial state of cell (i, j, k) of a level.
void gas_initial(const struct Setting* s, int level, const int cell[3], double* state);
// How far a density is from the exact one of the planar shock tube, or of the ramp, at a place (in
// cells of level 0, from the lower ends) and a time.
double gas_error(const struct Setting* s, double x, double y, double time, double density);
// The steepest slope that makes no new extreme.
static inline double minmod(double a, double b) {
  double least = (a < 0 ? -a : a) < (b < 0 ? -b : b) ? a : b;
  return a * b > 0 ? least : 0;
}
