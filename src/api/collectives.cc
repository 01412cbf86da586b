// Barrier, broadcast and reductions to one or all: MPI 5.0, chapter 6.
#include "api/detail/collective.h"

using namespace headway;
using namespace headway::api;

namespace {

int barrier(const char* call, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  int ended = MPI_SUCCESS;
  if (done_now(story, way, ended, [](const auto& place, auto& waiter, Outcome& outcome) {
        return collectives::barrier_now(place, waiter, outcome);
      })) {
    return ended;
  }
  return launch(story, collectives::barrier(place_of(story)), way);
}

int bcast(const char* call, void* buffer, int64_t count, MPI_Datatype datatype, int root,
          MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = check_root(story, root)) return code;
  const Part part = part_of(story);
  collectives::Data data;
  if (part.is_root || part.is_member) {
    if (const int code = take_buffer(story, buffer, count, datatype, data)) return code;
  }
  int ended = MPI_SUCCESS;
  if (done_now(story, way, ended, [&](const auto& place, auto& waiter, Outcome& outcome) {
        return collectives::bcast_now(place, waiter, data, root, outcome);
      })) {
    return ended;
  }
  return launch(story, collectives::bcast(place_of(story), data, root), way);
}

int reduce(const char* call, const void* sendbuf, void* recvbuf, int64_t count,
           MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = check_root(story, root)) return code;
  const Part part = part_of(story);
  collectives::Data in, out;
  if (part.is_member) {
    const bool in_place = part.is_root && is_in_place(sendbuf);
    if (const int code = take_buffer(story, in_place ? recvbuf : sendbuf, count, datatype, in)) {
      return code;
    }
  }
  if (part.is_root) {
    if (const int code = take_buffer(story, recvbuf, count, datatype, out)) return code;
    if (!is_in_place(sendbuf)) {
      if (const int code = refuse_shared(story, in, out)) return code;
    }
  }
  collectives::Reduction reduction;
  if (part.is_root || part.is_member) {
    if (const int code = take_op(story, op, datatype, reduction)) return code;
  }
  int ended = MPI_SUCCESS;
  if (done_now(story, way, ended, [&](const auto& place, auto& waiter, Outcome& outcome) {
        return collectives::reduce_now(place, waiter, in, out, reduction, root, outcome);
      })) {
    return ended;
  }
  return launch(story, collectives::reduce(place_of(story), in, out, reduction, root), way);
}

int allreduce(const char* call, const void* sendbuf, void* recvbuf, int64_t count,
              MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  collectives::Data in, out;
  if (const int code =
          take_buffer(story, stays(story, sendbuf) ? recvbuf : sendbuf, count, datatype, in)) {
    return code;
  }
  if (const int code = take_buffer(story, recvbuf, count, datatype, out)) return code;
  if (!is_in_place(sendbuf)) {
    if (const int code = refuse_shared(story, in, out)) return code;
  }
  collectives::Reduction reduction;
  if (const int code = take_op(story, op, datatype, reduction)) return code;
  int ended = MPI_SUCCESS;
  if (done_now(story, way, ended, [&](const auto& place, auto& waiter, Outcome& outcome) {
        return collectives::allreduce_now(place, waiter, in, out, reduction, outcome);
      })) {
    return ended;
  }
  return launch(story, collectives::allreduce(place_of(story), in, out, reduction), way);
}

}  // namespace

#include "api/entries/collectives.inl"
