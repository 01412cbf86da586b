// Error handlers as arguments of calls. Thread: any. Owner: each handle, and what it was set on,
// hold one reference. Invariant: a handler is called for the kind of object that it was made for.
#pragma once
#include "api/detail/call.h"

namespace headway::api {

// Finds the error handler, which must suit objects of that kind; raises MPI_ERR_ERRHANDLER.
int take_errhandler(const Story& story, MPI_Errhandler handle, objects::ErrhandlerTarget target,
                    objects::Errhandler*& found);
// Gives away a handle of one that an object holds.
MPI_Errhandler give_errhandler(objects::Errhandler* handler);
// Puts `handler` in the place of `held`.
void replace_errhandler(objects::Errhandler*& held, objects::Errhandler* handler);

}  // namespace headway::api
