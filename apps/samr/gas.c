// Godunov's method of second order (MUSCL-Hancock) with HLLC fluxes, all axes at once.
#include "gas.h"

#include <math.h>
#include <string.h>

static const double gamma_gas = 1.4;

enum {
  most_cells = (most_edge + 2 * ghosts) * (most_edge + 2 * ghosts) * (most_edge + 2 * ghosts)
};

// Of the block that is being worked on: primitive states (density, velocities, pressure), their
// slopes along each axis, states half a step later, fluxes.
static double prim[fields][most_cells];
static double slopes[3][fields][most_cells];
static double half[fields][most_cells];
static double flux_store[3][fields][most_cells];

static void to_primitive(size_t cells, const double* u) {
  const double *d = u, *mx = u + cells, *my = u + 2 * cells, *mz = u + 3 * cells,
               *e = u + 4 * cells;
  for (size_t c = 0; c < cells; c++) {
    double v = 1 / d[c];
    prim[0][c] = d[c];
    prim[1][c] = mx[c] * v;
    prim[2][c] = my[c] * v;
    prim[3][c] = mz[c] * v;
    double kinetic = mx[c] * prim[1][c] + (my[c] * prim[2][c] + mz[c] * prim[3][c]);
    prim[4][c] = (gamma_gas - 1) * (e[c] - 0.5 * kinetic);
  }
}

// Slopes of cells `from` to `to` along one axis.
static void take_slopes(size_t from, size_t to, int axis, size_t stride) {
  for (int f = 0; f < fields; f++)
    for (size_t c = from; c < to; c++) {
      double a = prim[f][c] - prim[f][c - stride], b = prim[f][c + stride] - prim[f][c];
      slopes[axis][f][c] = minmod(a, b);
    }
}

static void predict(size_t from, size_t to, double h) {
  for (size_t c = from; c < to; c++) {
    double d = prim[0][c], u = prim[1][c], v = prim[2][c], w = prim[3][c], p = prim[4][c];
    double grown = slopes[0][1][c] + (slopes[1][2][c] + slopes[2][3][c]);
    double moved[fields];
    for (int f = 0; f < fields; f++)
      moved[f] = u * slopes[0][f][c] + (v * slopes[1][f][c] + w * slopes[2][f][c]);
    half[0][c] = d - h * (moved[0] + d * grown);
    half[1][c] = u - h * (moved[1] + slopes[0][4][c] / d);
    half[2][c] = v - h * (moved[2] + slopes[1][4][c] / d);
    half[3][c] = w - h * (moved[3] + slopes[2][4][c] / d);
    half[4][c] = p - h * (moved[4] + gamma_gas * p * grown);
  }
}

// Fluxes along `axis` through the upper faces of cells `from` to `to` (Toro's HLLC).
static void take_fluxes(size_t from, size_t to, int axis, size_t stride) {
  for (size_t c = from; c < to; c++) {
    double l[fields], r[fields], q[fields];
    for (int f = 0; f < fields; f++) {
      l[f] = half[f][c] + 0.5 * slopes[axis][f][c];
      r[f] = half[f][c + stride] - 0.5 * slopes[axis][f][c + stride];
    }
    double ul = l[axis + 1], ur = r[axis + 1];
    double cl = sqrt(gamma_gas * l[4] / l[0]), cr = sqrt(gamma_gas * r[4] / r[0]);
    double low = ul - cl < ur - cr ? ul - cl : ur - cr,
           high = ul + cl > ur + cr ? ul + cl : ur + cr;
    double ml = l[0] * (low - ul), mr = r[0] * (high - ur);
    double middle = ((r[4] - l[4]) + (ml * ul - mr * ur)) / (ml - mr);
    int left = middle >= 0;
    for (int f = 0; f < fields; f++) q[f] = left ? l[f] : r[f];
    double wave = left ? low : high, un = left ? ul : ur;
    double energy =
        q[4] / (gamma_gas - 1) + 0.5 * q[0] * (q[1] * q[1] + (q[2] * q[2] + q[3] * q[3]));
    // Between the waves; written so that nothing at all flows where the middle one stands still.
    int inside = low < 0 && high > 0;
    double star = q[0] * (wave - un) / (wave - middle);
    double push = q[4] / (q[0] * (wave - un));
    double d = inside ? star : q[0], v = inside ? middle : un;
    double p = inside ? q[4] + q[0] * ((wave - un) * (middle - un)) : q[4];
    double e = inside ? star * (energy / q[0] + (middle - un) * (middle + push)) : energy;
    flux_store[axis][0][c] = d * v;
    for (int f = 1; f < 4; f++)
      flux_store[axis][f][c] = f == axis + 1 ? d * v * v + p : d * v * q[f];
    flux_store[axis][4][c] = v * (e + p);
  }
}

void gas_step(int edge, const double* now, double* next, double dt_dx, struct Fluxes* fluxes) {
  int m = padded(edge);
  size_t cells = cells_of(edge), stride[3] = {1, (size_t)m, (size_t)m * (size_t)m};
  to_primitive(cells, now);
  for (int k = -1; k <= edge; k++)
    for (int j = -1; j <= edge; j++) {
      int out = (k < 0 || k == edge) + (j < 0 || j == edge);
      if (out == 2) continue;  // no face of the block has it beside it
      size_t from = cell_at(m, -1 + out, j, k), to = cell_at(m, edge + 1 - out, j, k);
      for (int axis = 0; axis < 3; axis++) take_slopes(from, to, axis, stride[axis]);
      predict(from, to, 0.5 * dt_dx);
    }
  for (int axis = 0; axis < 3; axis++)
    for (int k = axis == 2 ? -1 : 0; k < edge; k++)
      for (int j = axis == 1 ? -1 : 0; j < edge; j++)
        take_fluxes(cell_at(m, axis == 0 ? -1 : 0, j, k), cell_at(m, edge, j, k), axis,
                    stride[axis]);
  for (int f = 0; f < fields; f++)
    for (int k = 0; k < edge; k++)
      for (int j = 0; j < edge; j++)
        for (size_t c = cell_at(m, 0, j, k), to = c + (size_t)edge; c < to; c++) {
          double x = flux_store[0][f][c] - flux_store[0][f][c - 1];
          double y = flux_store[1][f][c] - flux_store[1][f][c - stride[1]];
          double z = flux_store[2][f][c] - flux_store[2][f][c - stride[2]];
          next[(size_t)f * cells + c] = now[(size_t)f * cells + c] - dt_dx * (x + (y + z));
        }
  for (int axis = 0; axis < 3; axis++)
    for (int f = 0; f < fields; f++) fluxes->of[axis][f] = flux_store[axis][f];
}

double gas_speed(int edge, const double* now) {
  int m = padded(edge);
  double fastest = 0;
  to_primitive(cells_of(edge), now);
  for (int k = 0; k < edge; k++)
    for (int j = 0; j < edge; j++)
      for (int i = 0; i < edge; i++) {
        size_t c = cell_at(m, i, j, k);
        double sum = fabs(prim[1][c]) + (fabs(prim[2][c]) + fabs(prim[3][c]));
        sum += 3 * sqrt(gamma_gas * prim[4][c] / prim[0][c]);
        if (sum > fastest) fastest = sum;
      }
  return fastest;
}

int gas_jumps(int edge, const double* now, double share) {
  int m = padded(edge);
  size_t stride[3] = {1, (size_t)m, (size_t)m * (size_t)m};
  for (int k = -1; k <= edge; k++)
    for (int j = -1; j <= edge; j++)
      for (int i = -1; i <= edge; i++) {
        size_t c = cell_at(m, i, j, k);
        for (int axis = 0; axis < 3; axis++)
          if (fabs(now[c + stride[axis]] - now[c - stride[axis]]) > 2 * share * now[c]) return 1;
      }
  return 0;
}

// ---- problems ----------------------------------------------------------------------------------
// The shock tube's states: behind the shock and, so that no contact lies between them, the
// driver's: isentropic expansion from there leads to the state behind the shock.
struct Tube {
  double d2, u2, p2, c2, d4, p4, c4, shock;
};

static struct Tube tube_of(const struct Setting* s) {
  double g = gamma_gas, m2 = s->mach * s->mach, c1 = sqrt(g);
  struct Tube t;
  t.p2 = 1 + 2 * g / (g + 1) * (m2 - 1);
  t.d2 = (g + 1) * m2 / ((g - 1) * m2 + 2);
  t.shock = s->mach * c1;
  t.u2 = t.shock * (1 - 1 / t.d2);
  t.c2 = sqrt(g * t.p2 / t.d2);
  t.c4 = t.c2 + 0.5 * (g - 1) * t.u2;
  t.d4 = t.d2 * pow(t.c4 / t.c2, 2 / (g - 1));
  t.p4 = t.p2 * pow(t.c4 / t.c2, 2 * g / (g - 1));
  return t;
}

static const double driver_end = 0.2, interface_at = 0.3;  // of the tube's length
static const double amplitude = 0.1;                       // of its width
static const double ramp_speed = -2, ramp_top = 16;

// From the nearer end, so that both halves are the same to the last bit.
static double fold(int cell, int cells) {
  int other = cells - 1 - cell, near = cell < other ? cell : other;
  return (near + 0.5) / cells;
}

// The ramp: density grows evenly along y, from 1 to its top and down again at once where the ends
// are joined, and is carried along y, since pressure and velocity are the same everywhere. A method
// of second order is exact for it, and so must be all that it does between levels. It flows from
// the coarse cells, where density is high and jumps are a small share of it, into the finer ones.
static double ramp_density(const struct Setting* s, double y) {
  return 1 + (ramp_top - 1) * y / s->base_cells[1];
}

void gas_initial(const struct Setting* s, int level, const int cell[3], double* state) {
  const double circle = 6.283185307179586;
  const int* base = s->base_cells;
  memset(state, 0, fields * sizeof *state);
  if (s->problem == problem_ramp) {
    state[0] = ramp_density(s, (cell[1] + 0.5) / (double)(1 << level));
    state[2] = state[0] * ramp_speed;
    state[4] = 1 / (gamma_gas - 1) + 0.5 * state[0] * ramp_speed * ramp_speed;
    return;
  }
  struct Tube t = tube_of(s);
  double x = (cell[0] + 0.5) / (double)(1 << level);
  double y = fold(cell[1], base[1] << level), z = fold(cell[2], base[2] << level);
  double wave = amplitude * base[1] * (cos(circle * y) * cos(circle * z));
  int driver = x < driver_end * base[0];
  int heavy = s->problem == problem_rm && x > interface_at * base[0] + wave;
  double pressure = driver ? t.p4 : 1;
  state[0] = driver ? t.d4 : heavy ? s->step : 1;
  state[4] = pressure / (gamma_gas - 1);
}

static double tube_density(const struct Setting* s, double x, double time) {
  struct Tube t = tube_of(s);
  double from = x - driver_end * s->base_cells[0];
  if (time <= 0) return from < 0 ? t.d4 : 1;
  double speed = from / time;
  if (speed > t.shock) return 1;
  if (speed > t.u2 - t.c2) return t.d2;
  if (speed < -t.c4) return t.d4;
  double g = gamma_gas, c = 2 / (g + 1) * (t.c4 - 0.5 * (g - 1) * speed);
  return t.d4 * pow(c / t.c4, 2 / (g - 1));
}

double gas_error(const struct Setting* s, double x, double y, double time, double density) {
  if (s->problem != problem_ramp) return fabs(density - tube_density(s, x, time));
  // Only what the step's own errors have not reached in a few iterations.
  double share = y / s->base_cells[1];
  return share < 0.25 || share > 0.75 ? 0 : fabs(density - ramp_density(s, y - ramp_speed * time));
}
