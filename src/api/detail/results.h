// Where a call's results go: the pointers that a program passes for them. Thread: any. Owns
// nothing. Invariant: nothing is written through a null pointer.
#pragma once
#include "api/detail/call.h"

namespace headway::api {

[[gnu::cold, gnu::noinline]] inline int raise_no_place(const Story& story) {
  return raise(story, MPI_ERR_ARG, "the place for a result is a null pointer",
               "pass the address of a variable");
}
template <class... Place>
int check_places(const Story& story, const Place*... places) {
  if ((... && (places != nullptr))) [[likely]]
    return MPI_SUCCESS;
  return raise_no_place(story);
}

}  // namespace headway::api
