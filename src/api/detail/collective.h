// What the entries of all collectives share: checks, the reduction behind an op and a datatype,
// and running a schedule or handing it out as a request. Thread: any. Owns nothing.
#pragma once
#include "api/detail/message.h"
#include "api/detail/requests.h"
#include "collectives/collectives.h"

namespace headway::api {

// How a collective's entry ends: blocking if `request` is null.
inline int launch(const Story& story, collectives::Schedule* schedule, MPI_Request* request) {
  if (!schedule) return raise(story, Outcome::no_memory);
  if (request) return hand_out(story, schedule->start(), request);
  const Inside inside(story.call, unset, unset);
  const Outcome outcome = schedule->run(process().waiter());
  if (outcome == Outcome::ok) return MPI_SUCCESS;
  if (outcome == Outcome::truncated) {
    return raise(story, MPI_ERR_TRUNCATE, "the ranks disagree about the amount of data",
                 "all ranks must pass matching counts and datatypes to a collective");
  }
  return raise(story, outcome);
}

inline int check_root(const Story& story, int root) {
  if (root >= 0 && root < story.comm->size) return MPI_SUCCESS;
  return raise(story, MPI_ERR_ROOT, "the root is not a rank of the communicator");
}

// Finds the op and its kernel for story.type; raises MPI_ERR_OP.
inline int take_op(const Story& story, MPI_Op handle, MPI_Datatype datatype,
                   collectives::Reduction& reduction) {
  objects::Op* op = registry().find_op(value_of(handle));
  if (!op) {
    return raise(story, MPI_ERR_OP, "the operation is not valid: MPI_OP_NULL, freed, or never made");
  }
  reduction.op = op;
  reduction.type = story.type;
  reduction.type_handle = value_of(datatype);
  if (op->builtin == datatypes::ReduceOp::none) return MPI_SUCCESS;
  reduction.kernel = op->builtin == datatypes::ReduceOp::replace ||
                             op->builtin == datatypes::ReduceOp::no_op
                         ? nullptr
                         : datatypes::find_reducer(op->builtin, story.type->basic());
  return reduction.kernel ? MPI_SUCCESS : raise(story, Outcome::bad_operation);
}

inline collectives::Data data_of(const Story& story, const void* buffer) {
  return {const_cast<void*>(buffer), uint64_t(story.count), story.type};
}
inline bool is_in_place(const void* buffer) { return buffer == MPI_IN_PLACE; }

}  // namespace headway::api
