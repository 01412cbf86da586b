// Gather and scatter: MPI 5.0, sections 6.5 and 6.6.
#include "api/detail/collective.h"

using namespace headway;
using namespace headway::api;

namespace {

constexpr char leave_the_roots_block[] =
    "pass MPI_IN_PLACE as the root's receive buffer if its block is to stay where it is, or use a "
    "second buffer";

// Finds the communicator and checks the root.
int take_place(Story& story, MPI_Comm comm, int root, bool& is_root) {
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = check_root(story, root)) return code;
  is_root = story.comm->rank == root;
  return MPI_SUCCESS;
}

// What one rank gives or gets; only the root may leave it where it is.
int take_one(Story& story, bool is_root, const void* buffer, int64_t count, MPI_Datatype datatype,
             collectives::Data& data) {
  return is_root ? take_own(story, buffer, count, datatype, data)
                 : take_buffer(story, buffer, count, datatype, data);
}

int gather(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
           void* recvbuf, int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
           const Way& way) {
  Story story{.call = call};
  bool is_root;
  if (const int code = take_place(story, comm, root, is_root)) return code;
  collectives::Data in;
  collectives::Blocks out;
  if (const int code = take_one(story, is_root, sendbuf, sendcount, sendtype, in)) return code;
  if (is_root) {
    if (const int code = take_blocks(story, recvbuf, recvcount, recvtype, out)) return code;
    if (const int code = refuse_shared(story, in, out.range(0, story.comm->size))) return code;
  }
  return launch(story, collectives::gather(place_of(story), in, out, root), way);
}

template <class Count, class Place>
int gatherv(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
            void* recvbuf, const Count* recvcounts, const Place* displs, MPI_Datatype recvtype,
            int root, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  bool is_root;
  if (const int code = take_place(story, comm, root, is_root)) return code;
  collectives::Data in;
  collectives::Blocks out;
  if (const int code = take_one(story, is_root, sendbuf, sendcount, sendtype, in)) return code;
  if (is_root) {
    if (const int code =
            take_uneven(story, "recvcounts, displs", recvbuf, recvcounts, displs, recvtype, out)) {
      return code;
    }
    if (const int code = refuse_shared(story, Side(in), Side(out, story.comm->size))) return code;
  }
  return launch(story, collectives::gatherv(place_of(story), in, out, root), way);
}

int scatter(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
            void* recvbuf, int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
            const Way& way) {
  Story story{.call = call};
  bool is_root;
  if (const int code = take_place(story, comm, root, is_root)) return code;
  collectives::Blocks in;
  collectives::Data out;
  if (is_root) {
    if (const int code = take_blocks(story, sendbuf, sendcount, sendtype, in)) return code;
  }
  if (const int code = take_one(story, is_root, recvbuf, recvcount, recvtype, out)) return code;
  if (is_root) {
    if (const int code =
            refuse_shared(story, in.range(0, story.comm->size), out, leave_the_roots_block)) {
      return code;
    }
  }
  return launch(story, collectives::scatter(place_of(story), in, out, root), way);
}

template <class Count, class Place>
int scatterv(const char* call, const void* sendbuf, const Count* sendcounts, const Place* displs,
             MPI_Datatype sendtype, void* recvbuf, int64_t recvcount, MPI_Datatype recvtype,
             int root, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  bool is_root;
  if (const int code = take_place(story, comm, root, is_root)) return code;
  collectives::Blocks in;
  collectives::Data out;
  if (is_root) {
    if (const int code =
            take_uneven(story, "sendcounts, displs", sendbuf, sendcounts, displs, sendtype, in)) {
      return code;
    }
  }
  if (const int code = take_one(story, is_root, recvbuf, recvcount, recvtype, out)) return code;
  if (is_root) {
    if (const int code =
            refuse_shared(story, Side(in, story.comm->size), Side(out), leave_the_roots_block)) {
      return code;
    }
  }
  return launch(story, collectives::scatterv(place_of(story), in, out, root), way);
}

}  // namespace

HEADWAY_ENTRY(MPI_Gather)(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
              int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return gather("MPI_Gather", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                comm, Way{});
}
HEADWAY_ENTRY(MPI_Gather_c)(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return gather("MPI_Gather_c", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                comm, Way{});
}
HEADWAY_ENTRY(MPI_Igather)(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
               int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
               MPI_Request* request) {
  return gather("MPI_Igather", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                comm, Way{request});
}
HEADWAY_ENTRY(MPI_Igather_c)(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                 MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                 MPI_Request* request) {
  return gather("MPI_Igather_c", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                comm, Way{request});
}

HEADWAY_ENTRY(MPI_Gatherv)(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
               const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
               MPI_Comm comm) {
  return gatherv("MPI_Gatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                 root, comm, Way{});
}
HEADWAY_ENTRY(MPI_Gatherv_c)(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                 const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                 int root, MPI_Comm comm) {
  return gatherv("MPI_Gatherv_c", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                 recvtype, root, comm, Way{});
}
HEADWAY_ENTRY(MPI_Igatherv)(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
                MPI_Comm comm, MPI_Request* request) {
  return gatherv("MPI_Igatherv", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                 recvtype, root, comm, Way{request});
}
HEADWAY_ENTRY(MPI_Igatherv_c)(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                  const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                  int root, MPI_Comm comm, MPI_Request* request) {
  return gatherv("MPI_Igatherv_c", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                 recvtype, root, comm, Way{request});
}

HEADWAY_ENTRY(MPI_Scatter)(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
               int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return scatter("MPI_Scatter", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                 comm, Way{});
}
HEADWAY_ENTRY(MPI_Scatter_c)(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                 MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return scatter("MPI_Scatter_c", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                 comm, Way{});
}
HEADWAY_ENTRY(MPI_Iscatter)(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                MPI_Request* request) {
  return scatter("MPI_Iscatter", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                 comm, Way{request});
}
HEADWAY_ENTRY(MPI_Iscatter_c)(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                  MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                  MPI_Request* request) {
  return scatter("MPI_Iscatter_c", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                 comm, Way{request});
}

HEADWAY_ENTRY(MPI_Scatterv)(const void* sendbuf, const int sendcounts[], const int displs[],
                MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
                int root, MPI_Comm comm) {
  return scatterv("MPI_Scatterv", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                  recvtype, root, comm, Way{});
}
HEADWAY_ENTRY(MPI_Scatterv_c)(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                  MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                  int root, MPI_Comm comm) {
  return scatterv("MPI_Scatterv_c", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                  recvtype, root, comm, Way{});
}
HEADWAY_ENTRY(MPI_Iscatterv)(const void* sendbuf, const int sendcounts[], const int displs[],
                 MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
                 int root, MPI_Comm comm, MPI_Request* request) {
  return scatterv("MPI_Iscatterv", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                  recvtype, root, comm, Way{request});
}
HEADWAY_ENTRY(MPI_Iscatterv_c)(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                   MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                   int root, MPI_Comm comm, MPI_Request* request) {
  return scatterv("MPI_Iscatterv_c", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                  recvtype, root, comm, Way{request});
}

// Persistent ones.
HEADWAY_ENTRY(
    MPI_Gather_init)(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                    MPI_Request* request) {
  return gather("MPI_Gather_init", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                comm, Way{request, info});
}
HEADWAY_ENTRY(MPI_Gather_init_c)(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                     MPI_Info info, MPI_Request* request) {
  return gather("MPI_Gather_init_c", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                root, comm, Way{request, info});
}
HEADWAY_ENTRY(MPI_Gatherv_init)(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
                    MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return gatherv("MPI_Gatherv_init", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                 recvtype, root, comm, Way{request, info});
}
HEADWAY_ENTRY(MPI_Gatherv_init_c)(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                      void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                      MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request) {
  return gatherv("MPI_Gatherv_init_c", sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                 recvtype, root, comm, Way{request, info});
}
HEADWAY_ENTRY(MPI_Scatter_init)(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                    MPI_Request* request) {
  return scatter("MPI_Scatter_init", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                 root, comm, Way{request, info});
}
HEADWAY_ENTRY(MPI_Scatter_init_c)(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                      void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
                      MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return scatter("MPI_Scatter_init_c", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                 root, comm, Way{request, info});
}
HEADWAY_ENTRY(MPI_Scatterv_init)(const void* sendbuf, const int sendcounts[], const int displs[],
                     MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
                     int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return scatterv("MPI_Scatterv_init", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                  recvtype, root, comm, Way{request, info});
}
HEADWAY_ENTRY(MPI_Scatterv_init_c)(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                       MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                       MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                       MPI_Request* request) {
  return scatterv("MPI_Scatterv_init_c", sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                  recvtype, root, comm, Way{request, info});
}
