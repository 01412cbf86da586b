// Groups as handles. Thread: any. Owner: each handle holds one reference. Invariant: every handle
// given is one of its own, so that each MPI_Group_free takes away exactly one.
#pragma once
#include "api/detail/call.h"

namespace headway::api {

// Finds the group of a handle; raises MPI_ERR_GROUP.
int take_group(const Story& story, MPI_Group handle, objects::Group*& group);
// A new handle for `group`, whose reference goes to the handle.
int hand_out_group(const Story& story, objects::Group* group, MPI_Group* handle);

}  // namespace headway::api
