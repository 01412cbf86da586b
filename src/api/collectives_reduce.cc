// Reduce_scatter and scans: MPI 5.0, sections 6.10 and 6.11.
#include "api/detail/collective.h"

using namespace headway;
using namespace headway::api;

namespace {

// The elements that a rank contributes: `count` in the send buffer, or in place.
int take_contribution(Story& story, const void* sendbuf, void* recvbuf, int64_t count,
                      MPI_Datatype datatype, MPI_Op op, collectives::Data& in,
                      collectives::Reduction& reduction) {
  if (const int code =
          take_buffer(story, stays(story, sendbuf) ? recvbuf : sendbuf, count, datatype, in)) {
    return code;
  }
  return take_op(story, op, datatype, reduction);
}

int check_result(const Story& story, const void* recvbuf, int64_t count) {
  if (recvbuf || count == 0 || story.type->size() == 0 ||
      story.type->basic() == datatypes::BasicType::none) {
    return refuse_in_place(story, recvbuf);
  }
  return raise(story, MPI_ERR_BUFFER, "the receive buffer is a null pointer");
}

template <class Count>
int reduce_scatter(const char* call, const void* sendbuf, void* recvbuf, const Count* recvcounts,
                   MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = check_given(story, "recvcounts", recvcounts)) return code;
  int64_t count = 0;
  for (int rank = 0; rank < story.comm->own.size && count >= 0; ++rank) {
    const int64_t own = recvcounts[rank];
    if (own < 0 || __builtin_add_overflow(count, own, &count)) count = own < 0 ? -1 : INT64_MAX;
  }
  collectives::Data in;
  collectives::Reduction reduction;
  if (const int code =
          take_contribution(story, sendbuf, recvbuf, count, datatype, op, in, reduction)) {
    return code;
  }
  if (const int code = check_result(story, recvbuf, recvcounts[story.comm->own.self])) return code;
  if (!is_in_place(sendbuf)) {
    const collectives::Data out{recvbuf, uint64_t(recvcounts[story.comm->own.self]), story.type};
    if (const int code = refuse_shared(story, in, out)) return code;
  }
  return launch(story,
                collectives::reduce_scatter(place_of(story), in, recvbuf,
                                            datatypes::Integers(recvcounts), reduction),
                way);
}

int reduce_scatter_block(const char* call, const void* sendbuf, void* recvbuf, int64_t recvcount,
                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  collectives::Data in;
  collectives::Reduction reduction;
  int64_t count = 0;
  if (__builtin_mul_overflow(recvcount, int64_t(story.comm->own.size), &count)) {
    count = recvcount < 0 ? INT64_MIN : INT64_MAX;
  }
  if (const int code =
          take_contribution(story, sendbuf, recvbuf, count, datatype, op, in, reduction)) {
    return code;
  }
  if (const int code = check_result(story, recvbuf, recvcount)) return code;
  if (!is_in_place(sendbuf)) {
    const collectives::Data out{recvbuf, uint64_t(recvcount), story.type};
    if (const int code = refuse_shared(story, in, out)) return code;
  }
  return launch(story,
                collectives::reduce_scatter_block(place_of(story), in, recvbuf, uint64_t(recvcount),
                                                  reduction),
                way);
}

// The first rank of the exclusive one gets nothing, so its receive buffer may be anything, but the
// send buffer: that is the same mistake as at the other ranks, and is told at all of them.
template <bool exclusive>
int scan(const char* call, const void* sendbuf, void* recvbuf, int64_t count, MPI_Datatype datatype,
         MPI_Op op, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (story.comm->is_inter()) {
    return raise(story, MPI_ERR_COMM, "there are no scans on an inter-communicator",
                 "scan on the communicator that it was made of, or merge it: MPI_Intercomm_merge");
  }
  collectives::Data in;
  collectives::Reduction reduction;
  if (const int code =
          take_contribution(story, sendbuf, recvbuf, count, datatype, op, in, reduction)) {
    return code;
  }
  if (!exclusive || story.comm->own.self > 0) {
    if (const int code = check_result(story, recvbuf, count)) return code;
  }
  const collectives::Data out = data_of(story, recvbuf);
  if (!is_in_place(sendbuf)) {
    if (const int code = refuse_shared(story, in, out)) return code;
  }
  const auto start = exclusive ? &collectives::exscan : &collectives::scan;
  return launch(story, start(place_of(story), in, out, reduction), way);
}

}  // namespace

#include "api/entries/collectives_reduce.inl"
