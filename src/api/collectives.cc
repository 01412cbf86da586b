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
  collectives::Data data;
  if (const int code = take_buffer(story, buffer, count, datatype, data)) return code;
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
  const bool is_root = story.comm->rank == root;
  collectives::Data in, out;
  if (const int code = take_buffer(story, is_root && is_in_place(sendbuf) ? recvbuf : sendbuf,
                                   count, datatype, in)) {
    return code;
  }
  if (const int code = is_root ? take_buffer(story, recvbuf, count, datatype, out) : MPI_SUCCESS) {
    return code;
  }
  if (is_root && !is_in_place(sendbuf)) {
    if (const int code = refuse_shared(story, in, out)) return code;
  }
  collectives::Reduction reduction;
  if (const int code = take_op(story, op, datatype, reduction)) return code;
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
          take_buffer(story, is_in_place(sendbuf) ? recvbuf : sendbuf, count, datatype, in)) {
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

HEADWAY_ENTRY(MPI_Barrier)(MPI_Comm comm) { return barrier("MPI_Barrier", comm, Way{}); }
HEADWAY_ENTRY(MPI_Ibarrier)(MPI_Comm comm, MPI_Request* request) {
  return barrier("MPI_Ibarrier", comm, Way{request});
}

HEADWAY_ENTRY(MPI_Bcast)(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return bcast("MPI_Bcast", buffer, count, datatype, root, comm, Way{});
}
HEADWAY_ENTRY(MPI_Bcast_c)(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return bcast("MPI_Bcast_c", buffer, count, datatype, root, comm, Way{});
}
HEADWAY_ENTRY(MPI_Ibcast)(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
              MPI_Request* request) {
  return bcast("MPI_Ibcast", buffer, count, datatype, root, comm, Way{request});
}
HEADWAY_ENTRY(MPI_Ibcast_c)(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                MPI_Request* request) {
  return bcast("MPI_Ibcast_c", buffer, count, datatype, root, comm, Way{request});
}

HEADWAY_ENTRY(MPI_Reduce)(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
              int root, MPI_Comm comm) {
  return reduce("MPI_Reduce", sendbuf, recvbuf, count, datatype, op, root, comm, Way{});
}
HEADWAY_ENTRY(MPI_Reduce_c)(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                MPI_Op op, int root, MPI_Comm comm) {
  return reduce("MPI_Reduce_c", sendbuf, recvbuf, count, datatype, op, root, comm, Way{});
}
HEADWAY_ENTRY(MPI_Ireduce)(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
               int root, MPI_Comm comm, MPI_Request* request) {
  return reduce("MPI_Ireduce", sendbuf, recvbuf, count, datatype, op, root, comm, Way{request});
}
HEADWAY_ENTRY(MPI_Ireduce_c)(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Op op, int root, MPI_Comm comm, MPI_Request* request) {
  return reduce("MPI_Ireduce_c", sendbuf, recvbuf, count, datatype, op, root, comm, Way{request});
}

HEADWAY_ENTRY(MPI_Allreduce)(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                 MPI_Comm comm) {
  return allreduce("MPI_Allreduce", sendbuf, recvbuf, count, datatype, op, comm, Way{});
}
HEADWAY_ENTRY(MPI_Allreduce_c)(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                   MPI_Op op, MPI_Comm comm) {
  return allreduce("MPI_Allreduce_c", sendbuf, recvbuf, count, datatype, op, comm, Way{});
}
HEADWAY_ENTRY(MPI_Iallreduce)(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm, MPI_Request* request) {
  return allreduce("MPI_Iallreduce", sendbuf, recvbuf, count, datatype, op, comm, Way{request});
}
HEADWAY_ENTRY(MPI_Iallreduce_c)(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                    MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return allreduce("MPI_Iallreduce_c", sendbuf, recvbuf, count, datatype, op, comm, Way{request});
}

// Persistent ones.
HEADWAY_ENTRY(MPI_Barrier_init)(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return barrier("MPI_Barrier_init", comm, Way{request, info});
}
HEADWAY_ENTRY(MPI_Bcast_init)(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
                  MPI_Info info, MPI_Request* request) {
  return bcast("MPI_Bcast_init", buffer, count, datatype, root, comm, Way{request, info});
}
HEADWAY_ENTRY(MPI_Bcast_init_c)(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                    MPI_Info info, MPI_Request* request) {
  return bcast("MPI_Bcast_init_c", buffer, count, datatype, root, comm, Way{request, info});
}
HEADWAY_ENTRY(MPI_Reduce_init)(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                   int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return reduce("MPI_Reduce_init", sendbuf, recvbuf, count, datatype, op, root, comm,
                Way{request, info});
}
HEADWAY_ENTRY(MPI_Reduce_init_c)(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                     MPI_Op op, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return reduce("MPI_Reduce_init_c", sendbuf, recvbuf, count, datatype, op, root, comm,
                Way{request, info});
}
HEADWAY_ENTRY(MPI_Allreduce_init)(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype,
                      MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return allreduce("MPI_Allreduce_init", sendbuf, recvbuf, count, datatype, op, comm,
                   Way{request, info});
}
HEADWAY_ENTRY(MPI_Allreduce_init_c)(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                        MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return allreduce("MPI_Allreduce_init_c", sendbuf, recvbuf, count, datatype, op, comm,
                   Way{request, info});
}
