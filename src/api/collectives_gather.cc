// Gather and scatter: MPI 5.0, sections 6.5 and 6.6.
#include "api/detail/collective.h"

using namespace headway;
using namespace headway::api;

namespace {

constexpr char leave_the_roots_block[] =
    "pass MPI_IN_PLACE as the root's receive buffer if its block is to stay where it is, or use a "
    "second buffer";

// Finds the communicator, checks the root, and says what this rank does.
int take_place(Story& story, MPI_Comm comm, int root, Part& part) {
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = check_root(story, root)) return code;
  part = part_of(story);
  return MPI_SUCCESS;
}

// What one rank gives or gets; only the root may leave it where it is.
int take_one(Story& story, const Part& part, const void* buffer, int64_t count,
             MPI_Datatype datatype, collectives::Data& data) {
  if (!part.is_member) return MPI_SUCCESS;
  return part.is_root ? take_own(story, buffer, count, datatype, data)
                      : take_buffer(story, buffer, count, datatype, data);
}

int gather(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
           void* recvbuf, int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
           const Way& way) {
  Story story{.call = call};
  Part part;
  if (const int code = take_place(story, comm, root, part)) return code;
  collectives::Data in;
  collectives::Blocks out;
  if (const int code = take_one(story, part, sendbuf, sendcount, sendtype, in)) return code;
  if (part.is_root) {
    if (const int code = take_blocks(story, recvbuf, recvcount, recvtype, out)) return code;
    if (const int code = refuse_shared(story, in, out.range(0, story.comm->others.size)))
      return code;
  }
  int ended = MPI_SUCCESS;
  if (done_now(story, way, ended, [&](const auto& place, auto& waiter, Outcome& outcome) {
        return collectives::gather_now(place, waiter, in, out, root, outcome);
      })) {
    return ended;
  }
  return launch(story, collectives::gather(place_of(story), in, out, root), way);
}

template <class Count, class Place>
int gatherv(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
            void* recvbuf, const Count* recvcounts, const Place* displs, MPI_Datatype recvtype,
            int root, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  Part part;
  if (const int code = take_place(story, comm, root, part)) return code;
  collectives::Data in;
  collectives::Blocks out;
  if (const int code = take_one(story, part, sendbuf, sendcount, sendtype, in)) return code;
  if (part.is_root) {
    if (const int code =
            take_uneven(story, "recvcounts, displs", recvbuf, recvcounts, displs, recvtype, out)) {
      return code;
    }
    if (const int code = refuse_shared(story, Side(in), Side(out, story.comm->others.size)))
      return code;
  }
  return launch(story, collectives::gatherv(place_of(story), in, out, root), way);
}

int scatter(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
            void* recvbuf, int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
            const Way& way) {
  Story story{.call = call};
  Part part;
  if (const int code = take_place(story, comm, root, part)) return code;
  collectives::Blocks in;
  collectives::Data out;
  if (part.is_root) {
    if (const int code = take_blocks(story, sendbuf, sendcount, sendtype, in)) return code;
  }
  if (const int code = take_one(story, part, recvbuf, recvcount, recvtype, out)) return code;
  if (part.is_root) {
    if (const int code = refuse_shared(story, in.range(0, story.comm->others.size), out,
                                       leave_the_roots_block)) {
      return code;
    }
  }
  int ended = MPI_SUCCESS;
  if (done_now(story, way, ended, [&](const auto& place, auto& waiter, Outcome& outcome) {
        return collectives::scatter_now(place, waiter, in, out, root, outcome);
      })) {
    return ended;
  }
  return launch(story, collectives::scatter(place_of(story), in, out, root), way);
}

template <class Count, class Place>
int scatterv(const char* call, const void* sendbuf, const Count* sendcounts, const Place* displs,
             MPI_Datatype sendtype, void* recvbuf, int64_t recvcount, MPI_Datatype recvtype,
             int root, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  Part part;
  if (const int code = take_place(story, comm, root, part)) return code;
  collectives::Blocks in;
  collectives::Data out;
  if (part.is_root) {
    if (const int code =
            take_uneven(story, "sendcounts, displs", sendbuf, sendcounts, displs, sendtype, in)) {
      return code;
    }
  }
  if (const int code = take_one(story, part, recvbuf, recvcount, recvtype, out)) return code;
  if (part.is_root) {
    if (const int code = refuse_shared(story, Side(in, story.comm->others.size), Side(out),
                                       leave_the_roots_block)) {
      return code;
    }
  }
  return launch(story, collectives::scatterv(place_of(story), in, out, root), way);
}

}  // namespace

#include "api/entries/collectives_gather.inl"
