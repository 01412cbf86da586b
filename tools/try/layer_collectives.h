/* layer_collectives: in which collectives this rank was: a row for each communicator, of their
   kinds, roots and the bytes that this rank gave, in their order. Part of layer.c. What came of
   them is not looked at: programs reduce their times, and a sum's last digits follow from who came
   first. Nor are persistent ones. Thread: any (`lock`). Owner: the layer. Invariant: two runs with
   the same collectives have the same rows. */
#ifndef HEADWAY_TRY_LAYER_COLLECTIVES_H
#define HEADWAY_TRY_LAYER_COLLECTIVES_H

#include "layer_hash.h"

/* ---- what the generated entries ask for; as the recorder's layer has it ---- */

static int64_t peers_of(MPI_Comm comm) {
  int inter = 0, size = 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter) {
    PMPI_Comm_remote_size(comm, &size);
  } else {
    PMPI_Comm_size(comm, &size);
  }
  return size;
}

static int rank_in(MPI_Comm comm) {
  int rank = -1;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

static bool is_root(MPI_Comm comm, int root) { return root == MPI_ROOT || root == rank_in(comm); }

static uint64_t bytes_of(int64_t count, MPI_Datatype type) {
  int size = 0;
  if (count <= 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS)
    return 0;
  return (uint64_t)count * (uint64_t)size;
}

#define sum_of(comm, counts, type)                           \
  ({                                                         \
    int64_t whole = 0;                                       \
    const int64_t many = peers_of(comm);                     \
    for (int64_t i = 0; i < many; ++i) whole += (counts)[i]; \
    bytes_of(whole, type);                                   \
  })
#define sum_of_types(comm, counts, types)                                          \
  ({                                                                               \
    uint64_t whole = 0;                                                            \
    const int64_t many = peers_of(comm);                                           \
    for (int64_t i = 0; i < many; ++i) whole += bytes_of((counts)[i], (types)[i]); \
    whole;                                                                         \
  })

/* ---- rows ---- */

/* It was called, or begun, and MPI took it. */
static void met(unsigned kind, int root, uint64_t bytes, MPI_Comm comm) {
  const uint64_t what = mixed(mixed((uint64_t)kind << 32 ^ (uint32_t)root) ^ bytes);
  lock();
  TryChannel* row = channel_of(id_of(comm), TRY_COLLECTIVES, 0);
  row->sum += row->weight * (what | 1);
  row->weight = row->weight * turn + 2;
  ++row->count;
  unlock();
}

#endif
