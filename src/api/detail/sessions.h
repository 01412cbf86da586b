// Sessions as handles. Thread: any. Owner: each handle holds one reference. Invariant: a finalized
// session's handle is refused.
#pragma once
#include "api/detail/call.h"

namespace headway::api {

// Finds the session of a handle, as story.session; raises MPI_ERR_SESSION.
int take_session(Story& story, MPI_Session handle);

// Numbers of processes of other jobs come behind those of the own one.
inline bool is_of_this_job(uint32_t process) {
  return process < uint32_t(registry().everyone->own.size);
}

// What a call that makes a communicator out of groups alone is given.
struct FromGroup {
  Story story;
  objects::Group* group = nullptr;  // that this process is in, unless it is empty
  objects::Info* hints = nullptr;   // if any
};
// Finds these, and sets the result to the null handle; raises what is wrong.
int take_from_group(FromGroup& from, MPI_Group group, const char* stringtag, MPI_Info info,
                    MPI_Errhandler errhandler, MPI_Comm* newcomm);
// `made` gets the call's error handler and hints.
int hand_out_from_group(const FromGroup& from, objects::Comm& made, MPI_Comm* newcomm);

}  // namespace headway::api
