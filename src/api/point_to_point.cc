// Point-to-point: sends and receives: MPI 5.0, chapter 3. Each body checks, converts, calls and
// translates. The int and MPI_Count forms share one template.
#include "api/detail/message.h"
#include "api/detail/requests.h"
#include "api/detail/results.h"
#include "p2p/bsend.h"

using namespace headway;
using namespace headway::api;

namespace {

using p2p::Mode;

// Checks of every send; `go` stays false when there is nothing to do (error or PROC_NULL).
int check_send(Story& story, const void* buf, int64_t count, MPI_Datatype datatype, int dest,
               int tag, MPI_Comm comm) {
  story.peer = dest;
  story.tag = tag;
  story.count = count;
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = take_data(story, buf, count, datatype)) return code;
  return check_destination(story, dest, tag);  // last: its error tells the data, too
}

int check_receive(Story& story, const void* buf, int64_t count, MPI_Datatype datatype, int source,
                  int tag, MPI_Comm comm) {
  story.peer = source;
  story.tag = tag;
  story.count = count;
  story.receives = true;
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = take_data(story, buf, count, datatype)) return code;
  return check_source(story, source, tag);
}

template <Mode M>
int send(const char* call, const void* buf, int64_t count, MPI_Datatype datatype, int dest, int tag,
         MPI_Comm comm) {
  Story story{.call = call};
  if (const int code = check_send(story, buf, count, datatype, dest, tag, comm)) return code;
  if (dest == MPI_PROC_NULL) return MPI_SUCCESS;
  const p2p::Address to = destination_of(story);  // first: nothing is kept in registers beyond it
  const Inside inside(call, dest, tag, to.comm);
  Outcome outcome;
  if constexpr (M == Mode::buffered) {
    outcome = p2p::send_buffered(process().waiter(), memory_of(story, buf), to);
    if (outcome == Outcome::bad_argument) {
      return raise(story, MPI_ERR_BUFFER, "the attached buffer has no room for this message",
                   "attach a larger buffer (message + MPI_BSEND_OVERHEAD each), or pass "
                   "MPI_BUFFER_AUTOMATIC to MPI_Buffer_attach");
    }
  } else {
    outcome = p2p::send(process().waiter(), memory_of(story, buf), to, M);
  }
  return outcome == Outcome::ok ? MPI_SUCCESS : raise(story, outcome);
}

template <Mode M>
int isend(const char* call, const void* buf, int64_t count, MPI_Datatype datatype, int dest,
          int tag, MPI_Comm comm, MPI_Request* request) {
  Story story{.call = call};
  if (const int code = check_send(story, buf, count, datatype, dest, tag, comm)) return code;
  waiting::Waiter& waiter = process().waiter();
  if (dest == MPI_PROC_NULL) {
    return hand_out(story, p2p::make_complete(waiter, story.comm, dest, MPI_ANY_TAG), request);
  }
  if constexpr (M == Mode::buffered) {
    const int code = send<M>(call, buf, count, datatype, dest, tag, comm);
    if (code != MPI_SUCCESS) return code;
    return hand_out(story, p2p::make_complete(waiter, story.comm, dest, tag), request);
  } else {
    return hand_out(story, p2p::start_send(waiter, memory_of(story, buf), destination_of(story), M),
                    request);
  }
}

// A persistent request that talks to nobody: complete whenever it is started.
int persistent_null(const Story& story, MPI_Request* request) {
  protocols::Request* made =
      p2p::make_complete(process().waiter(), story.comm, MPI_PROC_NULL, MPI_ANY_TAG);
  if (made) made->persistent = true;
  return hand_out(story, made, request);
}

template <Mode M>
int send_init(const char* call, const void* buf, int64_t count, MPI_Datatype datatype, int dest,
              int tag, MPI_Comm comm, MPI_Request* request) {
  Story story{.call = call};
  if (const int code = check_send(story, buf, count, datatype, dest, tag, comm)) return code;
  if (dest == MPI_PROC_NULL) return persistent_null(story, request);
  return hand_out(story,
                  p2p::make_persistent(process().waiter(), memory_of(story, buf),
                                       destination_of(story), false, M),
                  request);
}

int receive(const char* call, void* buf, int64_t count, MPI_Datatype datatype, int source, int tag,
            MPI_Comm comm, MPI_Status* status) {
  Story story{.call = call};
  if (const int code = check_receive(story, buf, count, datatype, source, tag, comm)) return code;
  if (source == MPI_PROC_NULL) {
    set_empty(status, MPI_PROC_NULL);
    return MPI_SUCCESS;
  }
  objects::Comm* const on = story.comm;  // read once, before that
  const Inside inside(call, source, tag, on);
  p2p::Status got;
  const bool unmatched = status == MPI_STATUS_IGNORE && errors_abort(on);
  const Outcome outcome =
      p2p::receive(process().waiter(), memory_of(story, buf), source_of(story, on), unmatched, got);
  set_status(status, got);
  return outcome == Outcome::ok ? MPI_SUCCESS : raise_for(story, got, outcome);
}

int irecv(const char* call, void* buf, int64_t count, MPI_Datatype datatype, int source, int tag,
          MPI_Comm comm, MPI_Request* request) {
  Story story{.call = call};
  if (const int code = check_receive(story, buf, count, datatype, source, tag, comm)) return code;
  waiting::Waiter& waiter = process().waiter();
  if (source == MPI_PROC_NULL) {
    return hand_out(story, p2p::make_complete(waiter, story.comm, source, MPI_ANY_TAG), request);
  }
  return hand_out(story, p2p::start_receive(waiter, memory_of(story, buf), source_of(story)),
                  request);
}

int recv_init(const char* call, void* buf, int64_t count, MPI_Datatype datatype, int source,
              int tag, MPI_Comm comm, MPI_Request* request) {
  Story story{.call = call};
  if (const int code = check_receive(story, buf, count, datatype, source, tag, comm)) return code;
  if (source == MPI_PROC_NULL) return persistent_null(story, request);
  return hand_out(story,
                  p2p::make_persistent(process().waiter(), memory_of(story, buf), source_of(story),
                                       true, Mode::standard),
                  request);
}

}  // namespace

#include "api/entries/point_to_point.inl"
