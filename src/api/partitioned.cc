// Partitioned messages: MPI 5.0, chapter 4. Each body checks, converts, calls and translates.
#include "p2p/partitioned.h"

#include "api/detail/info.h"
#include "api/detail/message.h"
#include "api/detail/requests.h"
#include "api/detail/results.h"

using namespace headway;
using namespace headway::api;

namespace {

using protocols::Request;

// What both sides check; the story has the data and the other rank then.
int check_init(Story& story, const void* buf, int partitions, int64_t count, MPI_Datatype datatype,
               int rank, int tag, MPI_Comm comm, MPI_Info info) {
  story.peer = rank;
  story.tag = tag;
  if (const int code = take_comm(story, comm)) return code;
  if (partitions < 0) return raise(story, MPI_ERR_ARG, "the number of partitions is negative");
  if (info != MPI_INFO_NULL) {
    objects::Info* hints;
    if (const int code = take_info(story, info, hints)) return code;
  }
  // As if there were one partition at least, so that a wrong count is seen.
  if (const int code = take_data(story, partitions ? buf : &story, count, datatype)) return code;
  uint64_t all = 0;
  const bool fits = !__builtin_mul_overflow(uint64_t(count), uint64_t(partitions), &all) &&
                    all <= story.type->most();
  if (!fits && story.type->size() > 0) return raise_too_much(story);
  // No wildcards: the messages of a pair are introduced once.
  return check_destination(story, rank, tag);
}

template <bool receives>
int init(const char* call, const void* buf, int partitions, int64_t count, MPI_Datatype datatype,
         int rank, int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  Story story{.call = call, .receives = receives};
  if (const int code = check_init(story, buf, partitions, count, datatype, rank, tag, comm, info)) {
    return code;
  }
  const uint64_t channel = receives ? 0 : process().new_context();
  Request* made = p2p::make_partitioned(
      process().waiter(), {const_cast<void*>(buf), uint64_t(count), *story.type, partitions},
      {story.comm, rank, tag}, rank == MPI_PROC_NULL, receives, channel);
  return hand_out(story, made, request);
}

int take_partitioned(const Story& story, MPI_Request handle, bool receives, Request*& request) {
  if (!is_running()) return not_running(story.call);
  request = handle == MPI_REQUEST_NULL ? nullptr : find_request(handle);
  if (request && p2p::is_partitioned(request) && p2p::receives_parts(request) == receives) {
    return MPI_SUCCESS;
  }
  return raise(story, MPI_ERR_REQUEST,
               receives ? "the request is none of a partitioned receive"
                        : "the request is none of a partitioned send",
               receives ? "pass one of MPI_Precv_init" : "pass one of MPI_Psend_init");
}

int raise_partition(const Story& story, const Request* request, int partition) {
  const int partitions = p2p::partitions_of(request);
  base::Text<120> why;
  why << "there is no partition " << partition << ": the request has " << partitions;
  return raise(story, MPI_ERR_ARG, why.c_str(),
               "partitions go from 0 to one less than their number");
}

bool has(const Request* request, int partition) {
  return partition >= 0 && partition < p2p::partitions_of(request);
}

// The partitions from `low` to `high`, which the request has.
int make_ready(const Story& story, Request* request, int low, int high) {
  switch (p2p::make_ready(process().waiter(), request, low, high)) {
    case p2p::Ready::done: return MPI_SUCCESS;
    case p2p::Ready::twice:
      return raise(story, MPI_ERR_ARG, "a partition is ready already",
                   "say so once for each partition between MPI_Start and the end of the request");
    case p2p::Ready::inactive: break;
  }
  return raise(story, MPI_ERR_REQUEST, "the request is not active",
               "call MPI_Start before its partitions are ready");
}

int pready_range(const char* call, int low, int high, MPI_Request handle) {
  const Story story{.call = call};
  Request* request;
  if (const int code = take_partitioned(story, handle, false, request)) return code;
  for (const int one : {low, high}) {
    if (!has(request, one)) return raise_partition(story, request, one);
  }
  if (low > high) return raise(story, MPI_ERR_ARG, "the last partition is before the first one");
  return make_ready(story, request, low, high);
}

int pready(const char* call, int partition, MPI_Request handle) {
  return pready_range(call, partition, partition, handle);
}

int pready_list(const char* call, int length, const int partitions[], MPI_Request handle) {
  const Story story{.call = call};
  Request* request;
  if (const int code = take_partitioned(story, handle, false, request)) return code;
  if (length < 0) return raise(story, MPI_ERR_ARG, "the length of the list is negative");
  if (length > p2p::partitions_of(request)) {
    return raise(story, MPI_ERR_ARG, "the list is longer than the request has partitions");
  }
  for (int i = 0; i < length; ++i) {
    if (!has(request, partitions[i])) return raise_partition(story, request, partitions[i]);
  }
  for (int i = 0; i < length; ++i) {
    if (const int code = make_ready(story, request, partitions[i], partitions[i])) return code;
  }
  return MPI_SUCCESS;
}

int parrived(const char* call, MPI_Request handle, int partition, int* flag) {
  Story story{.call = call};
  Request* request;
  if (const int code = take_partitioned(story, handle, true, request)) return code;
  if (!has(request, partition)) return raise_partition(story, request, partition);
  bool is_here = true;
  Outcome outcome = Outcome::ok;
  if (is_active(request)) {
    outcome = p2p::look_for(process().waiter(), request, partition, is_here);
  }
  *flag = is_here;
  if (outcome == Outcome::ok) return MPI_SUCCESS;
  // Who asks until it is there would ask for ever.
  story.comm = static_cast<objects::Comm*>(request->communicator);
  return raise(story, outcome);
}

}  // namespace

#include "api/entries/partitioned.inl"
