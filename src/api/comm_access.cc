// Communicators, looking at them: MPI 5.0, sections 7.4.1 and 7.8.
#include <cstring>

#include "api/detail/dynamic.h"
#include "api/detail/groups.h"
#include "api/detail/info.h"
#include "api/detail/results.h"

using namespace headway;
using namespace headway::api;

namespace {

int comm_rank(const char* call, MPI_Comm comm, int* rank) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  *rank = story.comm->own.self;
  return MPI_SUCCESS;
}

int comm_size(const char* call, MPI_Comm comm, int* size) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  *size = story.comm->own.size;
  return MPI_SUCCESS;
}

int comm_compare(const char* call, MPI_Comm comm1, MPI_Comm comm2, int* result) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm2)) return code;
  const objects::Comm* second = story.comm;
  if (const int code = take_comm(story, comm1)) return code;
  if (story.comm == second) {
    *result = MPI_IDENT;
    return MPI_SUCCESS;
  }
  if (story.comm->is_inter() != second->is_inter()) {
    *result = MPI_UNEQUAL;
    return MPI_SUCCESS;
  }
  objects::Likeness likeness, remote = objects::Likeness::identical;
  Outcome compared = objects::compare(*story.comm->group, *second->group, likeness);
  if (compared == Outcome::ok && second->is_inter()) {
    compared = objects::compare(*story.comm->peers, *second->peers, remote);
  }
  if (compared != Outcome::ok) return raise(story, compared);
  if (remote > likeness) likeness = remote;
  *result = likeness == objects::Likeness::identical ? MPI_CONGRUENT
            : likeness == objects::Likeness::similar ? MPI_SIMILAR
                                                     : MPI_UNEQUAL;
  return MPI_SUCCESS;
}

int comm_set_name(const char* call, MPI_Comm comm, const char* comm_name) {
  static_assert(objects::max_object_name == MPI_MAX_OBJECT_NAME);
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  char* name = story.comm->name;
  const size_t length = strnlen(comm_name, MPI_MAX_OBJECT_NAME - 1);  // longer ones are cut
  memmove(name, comm_name, length);
  name[length] = '\0';
  return MPI_SUCCESS;
}

int comm_get_name(const char* call, MPI_Comm comm, char* comm_name, int* resultlen) {
  Story story{.call = call};
  const bool is_null =
      comm == MPI_COMM_NULL && is_running();  // it has a name: MPI 5.0, section 7.8
  if (!is_null) {
    if (const int code = take_comm(story, comm)) return code;
  }
  strcpy(comm_name, is_null ? "MPI_COMM_NULL" : story.comm->name);
  *resultlen = int(strlen(comm_name));
  return MPI_SUCCESS;
}

int comm_test_inter(const char* call, MPI_Comm comm, int* flag) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  *flag = story.comm->is_inter();
  return MPI_SUCCESS;
}

int comm_remote_size(const char* call, MPI_Comm comm, int* size) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (story.comm->is_inter()) {
    *size = story.comm->others.size;
    return MPI_SUCCESS;
  }
  return raise(story, MPI_ERR_COMM, "an intra-communicator has no remote group",
               "MPI_Comm_size tells the size");
}

int comm_remote_group(const char* call, MPI_Comm comm, MPI_Group* group) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (story.comm->is_inter()) {
    story.comm->peers->retain();
    return hand_out_group(story, story.comm->peers, group);
  }
  return raise(story, MPI_ERR_COMM, "an intra-communicator has no remote group",
               "MPI_Comm_group gives the group");
}

int comm_set_info(const char* call, MPI_Comm comm, MPI_Info info) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (info == MPI_INFO_NULL) return MPI_SUCCESS;
  objects::Info* hints;
  if (const int code = take_info(story, info, hints)) return code;
  use_hints(*story.comm, *hints);
  return MPI_SUCCESS;
}

int comm_get_info(const char* call, MPI_Comm comm, MPI_Info* info_used) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  objects::Info* made = objects::Info::make();
  if (made && !objects::tell_hints(*story.comm, *made)) {
    made->release();
    made = nullptr;
  }
  return hand_out_info(story, made, info_used);
}

// Every process is started by the launcher: nobody was spawned.
int comm_get_parent(const char* call, MPI_Comm* parent) {
  const Story story{.call = call};
  if (!is_running()) return not_running(story.call);
  *parent = handle_of<MPI_Comm>(parents());
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/comm_access.inl"
