// What the entries of all collectives share: checks, the reduction behind an op and a datatype,
// and running a schedule or handing it out as a request. Thread: any. Owns nothing.
#pragma once
#include "api/detail/message.h"
#include "api/detail/requests.h"
#include "api/detail/results.h"
#include "api/detail/shared.h"
#include "base/address.h"
#include "base/vec.h"
#include "collectives/collectives.h"
#include "collectives/lean.h"

namespace headway::api {

// How a call ends: it waits, hands out a request, or hands out a persistent one that is not
// started.
struct Way {
  enum class End : uint8_t { wait, request, persistent };
  [[gnu::always_inline]] Way() { note_site(); }
  explicit Way(MPI_Request* to) : end(End::request), request(to) {}
  Way(MPI_Request* to, MPI_Info hints) : end(End::persistent), request(to), info(hints) {}

  End end = End::wait;
  MPI_Request* request = nullptr;
  MPI_Info info = MPI_INFO_NULL;  // read and checked; no hint is used so far
};

// The algorithms that HEADWAY_COLL forces; read at the first use.
const collectives::Forced& forced_algorithms();

inline collectives::Place place_of(const Story& story) {
  return {process().engine(), story.comm, forced_algorithms()};
}

// How a collective's entry ends. Takes the schedule over.
int launch(const Story& story, collectives::Schedule* schedule, const Way& way);
// The same for one that has been done; raises what went wrong.
int conclude(const Story& story, Outcome outcome);

// A blocking call that `now(place, waiter, outcome)` may do without a schedule. False: it did not.
template <class Now>
bool done_now(const Story& story, const Way& way, int& code, Now&& now) {
  if (way.end != Way::End::wait || story.comm->is_inter()) return false;
  Outcome outcome = Outcome::ok;
  {
    const Inside inside(story.call, unset, story.root_or_unset(), story.comm);
    if (!now(place_of(story), process().waiter(), outcome)) return false;
  }
  code = conclude(story, outcome);
  return true;
}

// Raises MPI_ERR_ROOT.
[[gnu::cold, gnu::noinline]] int raise_root(const Story& story);

inline int check_root(Story& story, int root) {
  story.has_root = true;
  story.root = root;
  if (root >= 0 && root < story.comm->others.size) [[likely]]
    return MPI_SUCCESS;
  if (story.comm->is_inter() && (root == MPI_ROOT || root == MPI_PROC_NULL)) return MPI_SUCCESS;
  return raise_root(story);
}

// What a rank has to do with a collective that has a root.
struct Part {
  bool is_root;    // has the root's buffers
  bool is_member;  // has those of one that gives to the root, or gets from it
};
// After check_root.
inline Part part_of(const Story& story) {
  if (!story.comm->is_inter()) [[likely]]
    return {story.comm->own.self == story.root, true};
  return {story.root == MPI_ROOT, story.root >= 0};
}

inline bool is_in_place(const void* buffer) { return buffer == MPI_IN_PLACE; }
// Between the sides of an inter-communicator nothing is.
inline bool stays(const Story& story, const void* buffer) {
  return is_in_place(buffer) && !story.comm->is_inter();
}

// Refuses MPI_IN_PLACE where it means nothing.
inline int refuse_in_place(const Story& story, const void* buffer) {
  if (!is_in_place(buffer)) [[likely]]
    return MPI_SUCCESS;
  return raise(story, MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed for this buffer of this rank");
}

inline collectives::Data data_of(const Story& story, const void* buffer) {
  return {const_cast<void*>(buffer), uint64_t(story.count), story.type};
}

// A buffer's data; raises what does not fit.
[[gnu::always_inline]] inline int take_buffer(Story& story, const void* buffer, int64_t count,
                                              MPI_Datatype datatype, collectives::Data& data) {
  if (const int code = refuse_in_place(story, buffer)) return code;
  if (const int code = take_data(story, buffer, count, datatype)) return code;
  data = data_of(story, buffer);
  return MPI_SUCCESS;
}
// The same for a send buffer that may be MPI_IN_PLACE, which leaves `data` without a type.
inline int take_own(Story& story, const void* buffer, int64_t count, MPI_Datatype datatype,
                    collectives::Data& data) {
  return stays(story, buffer) ? MPI_SUCCESS : take_buffer(story, buffer, count, datatype, data);
}

// So many blocks of one length.
inline int take_blocks(Story& story, const void* buffer, int64_t count, MPI_Datatype datatype,
                       int number, collectives::Blocks& blocks) {
  if (const int code = refuse_in_place(story, buffer)) return code;
  if (const int code = take_data(story, buffer, count, datatype)) return code;
  uint64_t all = 0;
  if (__builtin_mul_overflow(uint64_t(count), uint64_t(number), &all) || all > story.type->most())
      [[unlikely]] {
    if (story.type->size() > 0) return raise_too_much(story);
  }
  blocks.set_even(const_cast<void*>(buffer), uint64_t(count), story.type);
  return MPI_SUCCESS;
}
// One for every rank.
inline int take_blocks(Story& story, const void* buffer, int64_t count, MPI_Datatype datatype,
                       collectives::Blocks& blocks) {
  return take_blocks(story, buffer, count, datatype, story.comm->others.size, blocks);
}

// Raises MPI_ERR_ARG for a block that no memory can hold.
[[gnu::cold, gnu::noinline]] int raise_place(const Story& story, int rank, int64_t place);

// Blocks with a length and a place for each rank. `names`: those of the two lists.
template <class Count, class Place>
int take_uneven(Story& story, const char* names, const void* buffer, const Count* counts,
                const Place* places, MPI_Datatype datatype, collectives::Blocks& blocks) {
  if (const int code = refuse_in_place(story, buffer)) return code;
  if (const int code = check_given(story, names, counts, places)) return code;
  int64_t most = 0;
  for (int rank = 0; rank < story.comm->others.size && most >= 0; ++rank) {
    most = counts[rank] < 0 || counts[rank] > most ? counts[rank] : most;
  }
  if (const int code = take_data(story, buffer, most, datatype)) return code;
  for (int rank = 0; rank < story.comm->others.size; ++rank) {
    if (counts[rank] == 0 || base::leads_somewhere(places[rank], story.type->extent())) continue;
    return raise_place(story, rank, places[rank]);
  }
  blocks = collectives::Blocks::uneven(const_cast<void*>(buffer), datatypes::Integers(counts),
                                       datatypes::Integers(places), story.type);
  return MPI_SUCCESS;
}

// Finds the op and its kernel for story.type; raises MPI_ERR_OP.
int take_op(const Story& story, MPI_Op handle, MPI_Datatype datatype,
            collectives::Reduction& reduction);

}  // namespace headway::api
