/* layer_sizes: how many bytes: of a type, of what a rank gives to a call, of what came. Part of
   layer.c. Thread: any. Owner: the layer. Invariant: what is remembered instead of asking MPI is
   what MPI would say. */
#ifndef HEADWAY_RECORD_LAYER_SIZES_H
#define HEADWAY_RECORD_LAYER_SIZES_H

#include "layer_tables.h"

/* ---- of types ---- */

/* Sizes of predefined types, which no program can free: each is asked for once. A word is a handle
   and its size below it, or `derived`: always to be asked, since that handle may be of another type
   tomorrow. Handles that are too long for that are asked each time. */
enum { KNOWN_TYPES = 64, SIZE_BITS = 16, derived = (1 << SIZE_BITS) - 1 };
static uint64_t known_types[KNOWN_TYPES];

__attribute__((noinline)) static uint64_t asked_size_of(MPI_Datatype type, uint64_t* known,
                                                        bool is_derived) {
  int size = 0, integers, addresses, types, combiner = MPI_COMBINER_DUP;
  if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS || size < 0) return 0;
  const uint64_t key = KEY(type);
  if (is_derived || key == 0 || key >> (64 - SIZE_BITS)) return (uint64_t)size;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  const bool lasts = combiner == MPI_COMBINER_NAMED && size < derived;
  __atomic_store_n(known, key << SIZE_BITS | (lasts ? (uint64_t)size : derived), __ATOMIC_RELAXED);
  return (uint64_t)size;
}

ENTRY uint64_t size_of(MPI_Datatype type) {
  const uint64_t key = KEY(type);
  uint64_t* known = &known_types[(key ^ key >> 9) % KNOWN_TYPES];
  /* Of that type nothing is left but the size. */
  const uint64_t size = __atomic_load_n(known, __ATOMIC_RELAXED) ^ key << SIZE_BITS;
  return __builtin_expect(size < derived, 1) ? size : asked_size_of(type, known, size == derived);
}

ENTRY uint64_t bytes_of(int64_t count, MPI_Datatype type) {
  return count <= 0 ? 0 : (uint64_t)count * size_of(type);
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

/* ---- of what came ---- */

/* MPI_Get_count takes longer than all that the layer does of a receive beside. Where in a status
   the bytes lie this MPI shows itself when it is told to set them; that is read instead once
   receives have agreed with MPI_Get_count. */
enum { NOWHERE = -1, AGREEING = 8 };
static int bytes_at = NOWHERE, bytes_may_be_at = NOWHERE; /* bytes from a status's beginning */
static int agreed;                                        /* receives */

#pragma weak PMPI_Status_set_elements

/* False: it is not to be read there: more than 2^32, or something beside it is set. */
ENTRY bool read_bytes(const MPI_Status* status, int at, uint64_t* bytes) {
  uint32_t low, high; /* apart, as some MPIs have written them */
  memcpy(&low, (const char*)status + at, sizeof low);
  memcpy(&high, (const char*)status + at + sizeof low, sizeof high);
  *bytes = low;
  return high == 0;
}

static bool shows_bytes_at(int at) {
  static const int shown[] = {0x1a2b3c4d, 1, 0x7fffffff, 0x00c0ffee};
  for (size_t i = 0; i < sizeof shown / sizeof *shown; ++i) {
    MPI_Status status;
    uint64_t bytes;
    memset(&status, 0, sizeof status);
    if (PMPI_Status_set_elements(&status, MPI_BYTE, shown[i]) != MPI_SUCCESS) return false;
    if (!read_bytes(&status, at, &bytes) || bytes != (uint64_t)shown[i]) return false;
  }
  return true;
}

/* When MPI was initialized. */
static void learn_status(void) {
  const int step = (int)sizeof(uint32_t), last = (int)sizeof(MPI_Status) - 2 * step;
  if (!PMPI_Status_set_elements) return;
  for (int at = 0; at <= last && bytes_may_be_at == NOWHERE; at += step) {
    if (shows_bytes_at(at)) bytes_may_be_at = at;
  }
}

static uint64_t bytes_by_mpi(const MPI_Status* status) {
  int count = 0;
  if (PMPI_Get_count(status, MPI_BYTE, &count) == MPI_SUCCESS && count != MPI_UNDEFINED)
    return (uint64_t)count;
#ifdef MPI_VERSION
  MPI_Count wide = 0;
  if (PMPI_Get_elements_x(status, MPI_BYTE, &wide) == MPI_SUCCESS && wide >= 0)
    return (uint64_t)wide;
#endif
  return 0;
}

__attribute__((noinline)) static uint64_t asked_bytes(const MPI_Status* status) {
  const uint64_t told = bytes_by_mpi(status);
  const int at = bytes_may_be_at;
  uint64_t read;
  if (at == NOWHERE || !read_bytes(status, at, &read)) return told;
  if (read != told) {
    bytes_may_be_at = NOWHERE;
    __atomic_store_n(&bytes_at, NOWHERE, __ATOMIC_RELAXED);
    record_forget_memos();
  } else if (told && ++agreed >= AGREEING) {
    __atomic_store_n(&bytes_at, at, __ATOMIC_RELAXED);
  }
  return told;
}

ENTRY uint64_t bytes_that_came(const MPI_Status* status) {
  const int at = __atomic_load_n(&bytes_at, __ATOMIC_RELAXED);
  uint64_t bytes;
  if (__builtin_expect(at != NOWHERE, 1) && read_bytes(status, at, &bytes)) return bytes;
  return asked_bytes(status);
}

#endif
