// Allgather and alltoall: MPI 5.0, sections 6.7 and 6.8.
#include "api/detail/collective.h"

using namespace headway;
using namespace headway::api;

namespace {

int allgather(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
              void* recvbuf, int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm,
              const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  collectives::Data in;
  collectives::Blocks out;
  if (const int code = take_own(story, sendbuf, sendcount, sendtype, in)) return code;
  if (const int code = take_blocks(story, recvbuf, recvcount, recvtype, out)) return code;
  if (const int code = refuse_shared(story, in, out.range(0, story.comm->others.size))) return code;
  int ended = MPI_SUCCESS;
  if (done_now(story, way, ended, [&](const auto& place, auto& waiter, Outcome& outcome) {
        return collectives::allgather_now(place, waiter, in, out, outcome);
      })) {
    return ended;
  }
  return launch(story, collectives::allgather(place_of(story), in, out), way);
}

template <class Count, class Place>
int allgatherv(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
               void* recvbuf, const Count* recvcounts, const Place* displs, MPI_Datatype recvtype,
               MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  collectives::Data in;
  collectives::Blocks out;
  if (const int code = take_own(story, sendbuf, sendcount, sendtype, in)) return code;
  if (const int code =
          take_uneven(story, "recvcounts, displs", recvbuf, recvcounts, displs, recvtype, out))
    return code;
  if (const int code = refuse_shared(story, Side(in), Side(out, story.comm->others.size)))
    return code;
  return launch(story, collectives::allgatherv(place_of(story), in, out), way);
}

int alltoall(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
             void* recvbuf, int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm,
             const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  collectives::Blocks in, out;
  if (!stays(story, sendbuf)) {
    if (const int code = take_blocks(story, sendbuf, sendcount, sendtype, in)) return code;
  }
  if (const int code = take_blocks(story, recvbuf, recvcount, recvtype, out)) return code;
  if (!in.in_place()) {
    const int ranks = story.comm->others.size;
    if (const int code = refuse_shared(story, in.range(0, ranks), out.range(0, ranks))) return code;
  }
  int ended = MPI_SUCCESS;
  if (done_now(story, way, ended, [&](const auto& place, auto& waiter, Outcome& outcome) {
        return collectives::alltoall_now(place, waiter, in, out, outcome);
      })) {
    return ended;
  }
  return launch(story, collectives::alltoall(place_of(story), in, out), way);
}

template <class Count, class Place>
int alltoallv(const char* call, const void* sendbuf, const Count* sendcounts, const Place* sdispls,
              MPI_Datatype sendtype, void* recvbuf, const Count* recvcounts, const Place* rdispls,
              MPI_Datatype recvtype, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  collectives::Blocks in, out;
  if (!stays(story, sendbuf)) {
    if (const int code =
            take_uneven(story, "sendcounts, sdispls", sendbuf, sendcounts, sdispls, sendtype, in)) {
      return code;
    }
  }
  if (const int code =
          take_uneven(story, "recvcounts, rdispls", recvbuf, recvcounts, rdispls, recvtype, out)) {
    return code;
  }
  if (const int code = refuse_shared(story, Side(in, story.comm->others.size),
                                     Side(out, story.comm->others.size)))
    return code;
  return launch(
      story, collectives::alltoallv(place_of(story), in, out, collectives::Kind::alltoallv), way);
}

using Types = base::Vec<const datatypes::Type*>;

// Blocks with types of their own. The type of an empty block means nothing.
template <class Count, class Place>
int take_typed(Story& story, const char* names, const void* buffer, const Count* counts,
               const Place* places, const MPI_Datatype* datatypes, Types& types,
               collectives::Blocks& blocks) {
  if (const int code = refuse_in_place(story, buffer)) return code;
  if (const int code = check_given(story, names, counts, places, datatypes)) return code;
  for (int rank = 0; rank < story.comm->others.size; ++rank) {
    const datatypes::Type* type = nullptr;
    if (counts[rank] != 0) {
      if (const int code = take_data(story, buffer, counts[rank], datatypes[rank])) return code;
      if (!base::leads_somewhere(places[rank], 1)) return raise_place(story, rank, places[rank]);
      type = story.type;
    }
    if (!types.push(type)) return raise(story, Outcome::no_memory);
  }
  blocks = collectives::Blocks::typed(const_cast<void*>(buffer), datatypes::Integers(counts),
                                      datatypes::Integers(places), types.data());
  return MPI_SUCCESS;
}

template <class Count, class Place>
int alltoallw(const char* call, const void* sendbuf, const Count* sendcounts, const Place* sdispls,
              const MPI_Datatype* sendtypes, void* recvbuf, const Count* recvcounts,
              const Place* rdispls, const MPI_Datatype* recvtypes, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  Types send_types, receive_types;
  collectives::Blocks in, out;
  if (!stays(story, sendbuf)) {
    if (const int code = take_typed(story, "sendcounts, sdispls, sendtypes", sendbuf, sendcounts,
                                    sdispls, sendtypes, send_types, in)) {
      return code;
    }
  }
  if (const int code = take_typed(story, "recvcounts, rdispls, recvtypes", recvbuf, recvcounts,
                                  rdispls, recvtypes, receive_types, out)) {
    return code;
  }
  if (const int code = refuse_shared(story, Side(in, story.comm->others.size),
                                     Side(out, story.comm->others.size)))
    return code;
  return launch(
      story, collectives::alltoallv(place_of(story), in, out, collectives::Kind::alltoallw), way);
}

}  // namespace

#include "api/entries/collectives_all.inl"
