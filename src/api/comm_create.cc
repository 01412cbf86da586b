// Communicators, making and freeing them: MPI 5.0, section 7.4.
#include <cstring>

#include "api/detail/attributes.h"
#include "api/detail/comms.h"
#include "api/detail/dynamic.h"
#include "api/detail/info.h"
#include "api/detail/requests.h"
#include "api/detail/results.h"
#include "objects/context.h"
#include "p2p/bsend.h"
#include "waiting/holding.h"

using namespace headway;
using namespace headway::api;

namespace {

int hand_out_comm(const Story& story, Outcome outcome, objects::Comm* made, MPI_Comm* handle) {
  if (outcome != Outcome::ok) return raise(story, outcome);
  *handle = made ? handle_of<MPI_Comm>(made->handle) : MPI_COMM_NULL;
  return MPI_SUCCESS;
}

// A copy callback failed. This rank has taken part, so that the others have theirs; its own goes.
void undo_dup(objects::Comm* made, protocols::Request* started) {
  if (started) {
    protocols::Engine& engine = process().engine();
    const waiting::Holding holding(engine);
    process().waiter().request(started);
    engine.give_request(started);
  }
  // What was copied is the program's, as its delete callbacks know.
  (void)delete_attributes(made->attributes, handle_of<MPI_Comm>(made->handle), true);
  drop(made);
}

// Hints come from the call's info alone: since MPI 4.0 a duplicate does not inherit them.
// `waits`: without a request.
int dup(const char* call, MPI_Comm comm, MPI_Info given, MPI_Comm* newcomm, bool waits,
        MPI_Request* request = nullptr) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  objects::Info* hints = nullptr;
  if (given != MPI_INFO_NULL) {
    if (const int code = take_info(story, given, hints)) return code;
  }
  *newcomm = MPI_COMM_NULL;
  objects::Comm* made = nullptr;
  protocols::Request* started = nullptr;
  {
    const Inside inside(call, unset, unset, story.comm);  // the copy callbacks are in their own
    if (!waits) {
      started = communicators::start_dup(makers(), story.comm, made);
      if (!started) return raise(story, Outcome::no_memory);
    } else {
      const Outcome outcome = communicators::dup(makers(), story.comm, made);
      if (outcome != Outcome::ok) return raise(story, outcome);
    }
  }
  const Callback copied = copy_attributes(story.comm->attributes, comm, made->attributes);
  if (copied.code != MPI_SUCCESS) {
    undo_dup(made, started);
    return raise(story, copied);
  }
  if (hints) use_hints(*made, *hints);
  *newcomm = handle_of<MPI_Comm>(made->handle);
  return waits ? MPI_SUCCESS : hand_out(story, started, request);
}

int split(const Story& story, int color, int key, MPI_Comm* newcomm) {
  const Inside inside(story.call, unset, unset, story.comm);
  objects::Comm* made = nullptr;
  const Outcome outcome = communicators::split(makers(), story.comm, color, key, made);
  return hand_out_comm(story, outcome, made, newcomm);
}

int take_members(const Story& story, MPI_Group handle, objects::Group*& group) {
  group = registry().find_group(value_of(handle));
  if (!group) return raise(story, MPI_ERR_GROUP, "the group is not valid: freed, or never made");
  objects::GroupIndex index;
  if (const Outcome built = index.build(*story.comm->group); built != Outcome::ok) {
    return raise(story, built);
  }
  for (int i = 0; i < group->size; ++i) {
    if (index.has(group->members[i])) continue;
    return raise(story, MPI_ERR_GROUP,
                 story.comm->is_inter() ? "the group has a member that is not in this side's group"
                                        : "the group has a member that is not in the communicator");
  }
  return MPI_SUCCESS;
}

// What the buffer holds leaves first.
void let_buffer_go(objects::Comm* comm) {
  if (!comm->buffer) return;
  void* memory;
  uint64_t size;
  bool automatic;
  (void)p2p::detach_buffer(process().waiter(), &comm->buffer, memory, size, automatic);
}

int free_comm(const char* call, MPI_Comm* comm) {
  Story story{.call = call};
  if (const int code = take_comm(story, *comm)) return code;
  if (story.comm == registry().world || story.comm == registry().self) {
    return raise(story, MPI_ERR_COMM, "a predefined communicator cannot be freed");
  }
  const Callback left = delete_attributes(story.comm->attributes, *comm);
  if (left.code != MPI_SUCCESS) return raise(story, left);
  let_buffer_go(story.comm);
  if (crosses_jobs(*story.comm)) [[unlikely]] {
    drop_across(story.comm);
  } else {
    drop(story.comm);
  }
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

}  // namespace

namespace headway::api {

static void forget(const objects::Comm& comm) {
  protocols::Engine& engine = process().engine();
  const waiting::Holding holding(engine);
  engine.forget(comm.context);
  if (comm.is_inter()) engine.forget(comm.own_side_context() - 1);
}

void drop(objects::Comm* comm) {
  forget(*comm);
  registry().comms.remove(comm->handle);
  objects::release(comm);
}

void end_comms(const objects::Session* session) {
  const uint32_t why = session ? ended_with_session : ended_with_world;
  const auto is_of_it = [session](const void* object) {
    return static_cast<const objects::Comm*>(object)->group->session == session;
  };
  uint32_t from = 0;
  while (void* ended = registry().comms.end_next(from, why, is_of_it)) {
    auto* comm = static_cast<objects::Comm*>(ended);
    let_buffer_go(comm);
    forget(*comm);
    objects::release(comm);
  }
}

}  // namespace headway::api

namespace {

int comm_split(const char* call, MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (color < 0 && color != MPI_UNDEFINED) {
    return raise(story, MPI_ERR_ARG, "the color is negative",
                 "colors are 0 or more; MPI_UNDEFINED stays out of all groups");
  }
  return split(story, color < 0 ? -1 : color, key, newcomm);
}

// Which ranks share memory with this one: those of its node, and of its job.
int shared_color(const objects::Comm& comm) {
  constexpr int node_bits = 31 - int(objects::context_job_bits);
  const int node = int(process().node_ranks()[0]);
  return crosses_jobs(comm) ? int(home().job) << node_bits | node : node;
}

int comm_split_type(const char* call, MPI_Comm comm, int split_type, int key, MPI_Info info,
                    MPI_Comm* newcomm) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  objects::Info* hints = nullptr;
  if (info != MPI_INFO_NULL) {
    if (const int code = take_info(story, info, hints)) return code;
  }
  switch (split_type) {
    case MPI_COMM_TYPE_SHARED: return split(story, shared_color(*story.comm), key, newcomm);
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED: {
      const char* wanted = hints ? hints->find("mpi_hw_resource_type") : nullptr;
      if (wanted && strcmp(wanted, shared_memory_domain) == 0) {
        return split(story, shared_color(*story.comm), key, newcomm);
      }
      [[fallthrough]];
    }
    case MPI_UNDEFINED:
    case MPI_COMM_TYPE_HW_UNGUIDED:
      // No narrower hardware domain is told apart: the standard's answer is the null communicator.
      return split(story, -1, key, newcomm);
    default: return raise(story, MPI_ERR_ARG, "there is no such split type");
  }
}

int comm_create(const char* call, MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  objects::Group* members;
  if (const int code = take_members(story, group, members)) return code;
  const Inside inside(story.call, unset, unset, story.comm);
  objects::Comm* made = nullptr;
  const Outcome outcome = communicators::create(makers(), story.comm, members, made);
  return hand_out_comm(story, outcome, made, newcomm);
}

int comm_create_group(const char* call, MPI_Comm comm, MPI_Group group, int tag,
                      MPI_Comm* newcomm) {
  Story story{.call = call};
  if (const int code = take_intra(story, comm)) return code;
  objects::Group* members;
  if (const int code = take_members(story, group, members)) return code;
  if (tag < 0) return raise(story, MPI_ERR_TAG, "the tag is negative");
  const Inside inside(story.call);  // not of all ranks of the communicator
  objects::Comm* made = nullptr;
  const Outcome outcome = communicators::create_group(makers(), story.comm, members, tag, made);
  return hand_out_comm(story, outcome, made, newcomm);
}

int comm_disconnect(const char* call, MPI_Comm* comm) {
  Story story{.call = call};
  if (const int code = take_comm(story, *comm)) return code;
  if (story.comm != registry().world && story.comm != registry().self) {
    // Waits until what is pending on it is complete, and only for that: requests that are inactive,
    // or complete and not waited for, and operations on other communicators do not hold it up.
    const Inside inside(story.call, unset, unset, story.comm);
    const objects::Comm* waited = story.comm;
    waiting::Waiter& waiter = process().waiter();
    const waiting::Holding holding(waiter.engine);
    waiter.until([&] { return waiter.engine.is_idle(waited, waited->context); }, nullptr);
  }
  if (crosses_jobs(*story.comm)) {
    if (const int code = part(story)) return code;
  }
  return free_comm(call, comm);
}

}  // namespace

#include "api/entries/comm_create.inl"
