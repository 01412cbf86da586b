/* layer_narrow: large counts over an MPI that has none. Part of layer.c. Thread: any. Owner: the
   layer. Invariant: a list that an operation reads lives as long as that. */
#ifndef HEADWAY_RECORD_LAYER_NARROW_H
#define HEADWAY_RECORD_LAYER_NARROW_H

#include "layer_tables.h"

/* ---- large counts over an MPI without them ---- */

static void hold(void* a, void* b, void* c, void* d) {
  narrows = true;
  to_hold = malloc(4 * sizeof *to_hold);
  if (!to_hold) return; /* they stay for ever */
  to_hold[0] = a;
  to_hold[1] = b;
  to_hold[2] = c;
  to_hold[3] = d;
}

/* What no known operation holds: of one that was not begun it goes, of one that is not followed it
 * stays for ever. */
static void release_unheld(int rc) {
  if (rc != MPI_SUCCESS) free_lists(to_hold);
  to_hold = NULL;
}

/* MPI_Count and MPI_Aint are of the same size here, or the narrower one is read as such. */
static int* narrow(bool* fits, const void* wide, int64_t count, size_t size) {
  int* list = wide ? malloc(sizeof *list * (size_t)(count > 0 ? count : 1)) : NULL;
  if (wide && !list) *fits = false;
  for (int64_t i = 0; list && i < count; ++i) {
    const int64_t value = size == 8 ? ((const int64_t*)wide)[i] : ((const int32_t*)wide)[i];
    *fits = *fits && value >= INT_MIN && value <= INT_MAX;
    list[i] = (int)value;
  }
  return list;
}

static void count_peers(MPI_Comm comm, int64_t* in, int64_t* out) {
  int size = 0, inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter) {
    PMPI_Comm_remote_size(comm, &size);
  } else {
    PMPI_Comm_size(comm, &size);
  }
  *in = *out = size;
}

static void count_neighbours(MPI_Comm comm, int64_t* in, int64_t* out) {
  int kind = MPI_UNDEFINED, a = 0, b = 0, weighted = 0, rank = 0;
  PMPI_Topo_test(comm, &kind);
  if (kind == MPI_DIST_GRAPH) {
    PMPI_Dist_graph_neighbors_count(comm, &a, &b, &weighted);
  } else if (kind == MPI_GRAPH) {
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &a);
    b = a;
  } else if (kind == MPI_CART) {
    PMPI_Cartdim_get(comm, &a);
    a = b = 2 * a;
  }
  *in = a;
  *out = b;
}

static int too_large(MPI_Comm comm) {
  PMPI_Comm_call_errhandler(comm, MPI_ERR_COUNT);
  return MPI_ERR_COUNT;
}

#endif
