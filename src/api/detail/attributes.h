// Attributes of communicators and datatypes where they are made and freed. Thread: any, without the
// engine and without a lock: the program's callbacks run, and may call MPI. Owns nothing.
// Invariant: a callback's error is told to nobody here, so that the caller may put things in order
// first.
#pragma once
#include "api/detail/call.h"
#include "objects/attributes.h"

namespace headway::api {

// How callbacks ended: the code for the program, and what went wrong.
struct [[nodiscard]] Callback {
  int code = MPI_SUCCESS;
  const char* why = nullptr;
};
[[gnu::cold, gnu::noinline]] int raise(const Story& story, const Callback& failed);

// Runs the copy callbacks of `from`, which `old` has, and stores their results in `to`. Stops at
// the first error. Handle: MPI_Comm or MPI_Datatype.
template <class Handle>
Callback copy_attributes(const objects::Attributes& from, Handle old, objects::Attributes& to);

// Runs the delete callbacks of all attributes of `handle`, the newest first, and takes them out.
// Stops at the first error, which leaves that attribute where it is; with `regardless` goes on to
// the end without it.
template <class Handle>
Callback delete_attributes(objects::Attributes& list, Handle handle, bool regardless = false);

}  // namespace headway::api
