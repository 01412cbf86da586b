// What the programs about collectives share: each call in its blocking, immediate and persistent
// form under one name, and the communicators on which everything is tried. Thread: one. Invariant:
// a wrapper returns when the operation is complete on this rank.
#pragma once
#include <functional>

#include "check.h"

namespace coll {

enum class Form { blocking, immediate, persistent };
inline Form form = Form::blocking;

inline void finish(MPI_Request& request) {
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_EQ(request, MPI_REQUEST_NULL);
}
inline void run_persistent(MPI_Request& request) {
  MPI(MPI_Start(&request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(request != MPI_REQUEST_NULL);
  MPI(MPI_Request_free(&request));
}

// `name` is the lower-case name, as in MPI_I<name>; then the parameters; then their names.
#define COLLECTIVE(Name, name, parameters, ...)                     \
  inline void name parameters {                                     \
    MPI_Request request = MPI_REQUEST_NULL;                         \
    if (form == Form::blocking) {                                   \
      MPI(MPI_##Name(__VA_ARGS__));                                 \
    } else if (form == Form::immediate) {                           \
      MPI(MPI_I##name(__VA_ARGS__, &request));                      \
      finish(request);                                              \
    } else {                                                        \
      MPI(MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request)); \
      run_persistent(request);                                      \
    }                                                               \
  }

using Ints = const int*;
using Type = MPI_Datatype;
using Types = const MPI_Datatype*;
using Comm = MPI_Comm;
COLLECTIVE(Barrier, barrier, (Comm c), c)
COLLECTIVE(Bcast, bcast, (void* b, int n, Type t, int root, Comm c), b, n, t, root, c)
COLLECTIVE(Gather, gather, (const void* s, int n, Type t, void* r, int m, Type u, int root, Comm c),
           s, n, t, r, m, u, root, c)
COLLECTIVE(Gatherv, gatherv,
           (const void* s, int n, Type t, void* r, Ints m, Ints d, Type u, int root, Comm c), s, n,
           t, r, m, d, u, root, c)
COLLECTIVE(Scatter, scatter,
           (const void* s, int n, Type t, void* r, int m, Type u, int root, Comm c), s, n, t, r, m,
           u, root, c)
COLLECTIVE(Scatterv, scatterv,
           (const void* s, Ints n, Ints d, Type t, void* r, int m, Type u, int root, Comm c), s, n,
           d, t, r, m, u, root, c)
COLLECTIVE(Allgather, allgather, (const void* s, int n, Type t, void* r, int m, Type u, Comm c), s,
           n, t, r, m, u, c)
COLLECTIVE(Allgatherv, allgatherv,
           (const void* s, int n, Type t, void* r, Ints m, Ints d, Type u, Comm c), s, n, t, r, m,
           d, u, c)
COLLECTIVE(Alltoall, alltoall, (const void* s, int n, Type t, void* r, int m, Type u, Comm c), s, n,
           t, r, m, u, c)
COLLECTIVE(Alltoallv, alltoallv,
           (const void* s, Ints n, Ints d, Type t, void* r, Ints m, Ints e, Type u, Comm c), s, n,
           d, t, r, m, e, u, c)
COLLECTIVE(Alltoallw, alltoallw,
           (const void* s, Ints n, Ints d, Types t, void* r, Ints m, Ints e, Types u, Comm c), s, n,
           d, t, r, m, e, u, c)
COLLECTIVE(Reduce, reduce, (const void* s, void* r, int n, Type t, MPI_Op op, int root, Comm c), s,
           r, n, t, op, root, c)
COLLECTIVE(Allreduce, allreduce, (const void* s, void* r, int n, Type t, MPI_Op op, Comm c), s, r,
           n, t, op, c)
COLLECTIVE(Reduce_scatter, reduce_scatter,
           (const void* s, void* r, Ints n, Type t, MPI_Op op, Comm c), s, r, n, t, op, c)
COLLECTIVE(Reduce_scatter_block, reduce_scatter_block,
           (const void* s, void* r, int n, Type t, MPI_Op op, Comm c), s, r, n, t, op, c)
COLLECTIVE(Scan, scan, (const void* s, void* r, int n, Type t, MPI_Op op, Comm c), s, r, n, t, op,
           c)
COLLECTIVE(Exscan, exscan, (const void* s, void* r, int n, Type t, MPI_Op op, Comm c), s, r, n, t,
           op, c)

// A communicator under test and this rank's place in it.
struct Place {
  MPI_Comm comm;
  int rank, size;
};

// Runs `body` on the world, on the world backwards, and on halves of uneven size; in every form
// that the program was asked for (the word "persistent" on the command line asks for that alone).
inline void everywhere(const std::function<void(const Place&)>& body) {
  bool persistent = false;
  for (const std::string& word : check::words) persistent |= word == "persistent";
  int third = check::rank < (check::size + 2) / 3 ? 0 : 1;
  for (int shape = 0; shape < 3; ++shape) {
    if (shape > 0 && check::size == 1) break;
    MPI_Comm comm = MPI_COMM_WORLD;
    if (shape == 1) MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -check::rank, &comm));
    if (shape == 2) MPI(MPI_Comm_split(MPI_COMM_WORLD, third, check::rank, &comm));
    Place place{comm, -1, 0};
    MPI(MPI_Comm_rank(comm, &place.rank));
    MPI(MPI_Comm_size(comm, &place.size));
    if (shape == 1) CHECK_EQ(place.rank, check::size - 1 - check::rank);
    if (persistent) {
      form = Form::persistent;
      body(place);
    } else {
      for (Form f : {Form::blocking, Form::immediate}) {
        form = f;
        body(place);
      }
    }
    form = Form::blocking;
    if (shape > 0) MPI(MPI_Comm_free(&comm));
  }
}

// The value that `rank` contributes at `index` of operation `salt`.
inline int value(int rank, size_t index, int salt) {
  return static_cast<int>(check::key_of(rank, index, salt) & 0x7fffffff);
}
constexpr int guard = 0x5e5e5e5e;  // stands behind each receive buffer

// All roots while messages are small, else the ends and the middle.
inline std::vector<int> roots(int size, size_t count) {
  std::vector<int> r;
  if (count <= 1024) {
    for (int i = 0; i < size; ++i) r.push_back(i);
  } else {
    r = {0};
    if (size > 1) r.push_back(size - 1);
    if (size > 3) r.push_back(size / 2);
  }
  return r;
}

}  // namespace coll
