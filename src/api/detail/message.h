// Checks of the arguments that sends, receives and collectives share: buffer, count, datatype,
// rank, tag. Thread: any. Owns nothing. Invariant: on success the story holds the objects, and
// nothing was changed.
#pragma once
#include "api/detail/call.h"
#include "p2p/p2p.h"
#include "protocols/user_memory.h"

namespace headway::api {

// What is wrong with a handle that is no datatype's.
const char* why_no_type(MPI_Datatype handle);
// Raises MPI_ERR_COUNT or MPI_ERR_TYPE for a count and a datatype of which one is wrong.
[[gnu::cold, gnu::noinline]] int raise_data(const Story& story, MPI_Datatype datatype);
// Raises MPI_ERR_BUFFER for MPI_IN_PLACE or a null pointer.
[[gnu::cold, gnu::noinline]] int raise_buffer(const Story& story, const void* buffer);
[[gnu::cold, gnu::noinline]] int raise_too_much(const Story& story);

// Finds the datatype; raises MPI_ERR_TYPE, MPI_ERR_COUNT or MPI_ERR_BUFFER. After it, counts times
// sizes, extents and bounds overflow nothing.
inline int take_data(Story& story, const void* buffer, int64_t count, MPI_Datatype datatype) {
  story.count = count;
  const datatypes::Type* type = registry().find_type(value_of(datatype));
  story.type = type;
  // As a number without a sign, a negative count is too large as well.
  if (!type || !type->committed() || uint64_t(count) > type->most()) [[unlikely]]
    return raise_data(story, datatype);
  // A derived type may hold absolute addresses (MPI_BOTTOM is the null pointer in this ABI).
  // MPI_IN_PLACE is the number 1, so that one comparison finds both.
  if (value_of(buffer) <= 1 && count > 0 && type->size() > 0 &&
      (buffer || type->basic() != datatypes::BasicType::none)) [[unlikely]] {
    return raise_buffer(story, buffer);
  }
  return MPI_SUCCESS;
}

inline const char* no_such_rank(const Story& story) {
  return story.comm->is_inter() ? "there is no such rank in the remote group"
                                : "there is no such rank in the communicator";
}

inline int check_destination(Story& story, int rank, int tag) {
  story.peer = rank;
  story.tag = tag;
  if ((rank < 0 && rank != MPI_PROC_NULL) || rank >= story.comm->others.size) [[unlikely]] {
    return raise(story, MPI_ERR_RANK, no_such_rank(story),
                 "ranks go from 0 to one less than the size; sends to MPI_PROC_NULL do nothing");
  }
  if (tag < 0) [[unlikely]] {
    return raise(story, MPI_ERR_TAG, "the tag is negative");
  }
  return MPI_SUCCESS;
}

inline int check_source(Story& story, int rank, int tag) {
  story.peer = rank;
  story.tag = tag;
  story.receives = true;
  if ((rank < 0 && rank != MPI_PROC_NULL && rank != MPI_ANY_SOURCE) ||
      rank >= story.comm->others.size) [[unlikely]] {
    return raise(story, MPI_ERR_RANK, no_such_rank(story),
                 "ranks go from 0 to one less than the size; MPI_ANY_SOURCE takes all");
  }
  if (tag < 0 && tag != MPI_ANY_TAG) [[unlikely]] {
    return raise(story, MPI_ERR_TAG, "the tag is negative",
                 "tags go from 0 to MPI_TAG_UB, which is 2147483647 here; MPI_ANY_TAG takes all");
  }
  return MPI_SUCCESS;
}

// True if both lie in one piece and have a byte in common.
inline bool share_memory(const protocols::UserMemory& a, const protocols::UserMemory& b) {
  return a.is_flat() && b.is_flat() && a.bytes() != 0 && b.bytes() != 0 &&
         a.flat() < b.flat() + b.bytes() && b.flat() < a.flat() + a.bytes();
}
inline constexpr char shared_buffers[] =
    "the send buffer and the receive buffer are the same memory, in whole or in part";
inline constexpr char shared_cause[] = "the same variable was passed for both";

inline p2p::Address source_of(const Story& story, objects::Comm* comm) {
  static_assert(MPI_ANY_SOURCE == matching::any);
  return {comm, story.peer, story.tag == MPI_ANY_TAG ? matching::any : story.tag};
}
inline p2p::Address source_of(const Story& story) { return source_of(story, story.comm); }
inline p2p::Address destination_of(const Story& story) {
  return {story.comm, story.peer, story.tag};
}
inline protocols::UserMemory memory_of(const Story& story, const void* buffer) {
  return {buffer, uint64_t(story.count), *story.type};
}

}  // namespace headway::api
