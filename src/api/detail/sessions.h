// Sessions as handles. Thread: any. Owner: each handle holds one reference. Invariant: a finalized
// session's handle is refused.
#pragma once
#include "api/detail/call.h"

namespace headway::api {

// Finds the session of a handle, as story.session; raises MPI_ERR_SESSION.
int take_session(Story& story, MPI_Session handle);

}  // namespace headway::api
