// Datatypes as handles. Thread: any. Owner: each handle holds one reference. Invariant: a freed
// handle is refused at once, while operations in progress keep the type itself.
#pragma once
#include "api/detail/call.h"
#include "datatypes/type.h"

namespace headway::api {

// Finds the datatype of a handle; raises MPI_ERR_TYPE.
int take_type(Story& story, MPI_Datatype handle, datatypes::Type*& type);
// The same for what a call counts in elements of it; raises MPI_ERR_COUNT for a negative count,
// too.
int take_counted_type(Story& story, MPI_Datatype handle, int64_t count, datatypes::Type*& type);
// Gives a new type its handle, or raises what its constructor said.
int hand_out_type(const Story& story, Outcome outcome, datatypes::Type* made, MPI_Datatype* handle);

}  // namespace headway::api
