// Where a call's results go, and its lists: the pointers that a program passes for them. Thread:
// any. Owns nothing. Invariant: nothing is written through a null pointer.
#pragma once
#include "api/detail/call.h"

namespace headway::api {

// Raises for the first null pointer among arguments that the call cannot do without. `names`: how
// the standard calls them, with commas between.
[[gnu::cold, gnu::noinline]] int raise_null(const Story& story, const char* names,
                                            const void* const* arguments);
template <class... Argument>
int check_given(const Story& story, const char* names, const Argument*... arguments) {
  if ((... && (arguments != nullptr))) [[likely]]
    return MPI_SUCCESS;
  const void* const list[] = {arguments...};
  return raise_null(story, names, list);
}
// The same for a call of which no more is known; it costs the comparisons alone.
[[gnu::cold, gnu::noinline]] int raise_null(const char* call, const char* names,
                                            const void* const* arguments);
template <class... Argument>
int check_given(const char* call, const char* names, const Argument*... arguments) {
  if ((... && (arguments != nullptr))) [[likely]]
    return MPI_SUCCESS;
  const void* const list[] = {arguments...};
  return raise_null(call, names, list);
}

// Gives the program a handle for what a call has made, and owns. It is let go where there is none.
template <class Table, class Object, class Handle>
int hand_out(const Story& story, Table& table, Object* made, Handle* handle) {
  const uintptr_t value = table.add(made);
  if (!value) {
    made->release();
    return raise(story, Outcome::no_resource);
  }
  *handle = handle_of<Handle>(value);
  return MPI_SUCCESS;
}

// A pointer that a call cannot do without is null: which one, and what its generated entry knows of
// the call.
struct Missing {
  const char* argument;
  Story story;
  MPI_Comm comm = nullptr;
  MPI_Session session = nullptr;
  MPI_Datatype datatype = nullptr;
  MPI_Errhandler errhandler = nullptr;  // of what the call would make
  MPI_Win win = nullptr;
  MPI_File file = nullptr;
  bool of_files = false;  // on none, or on one that is not open yet
  bool any_time = false;  // MPI need not run for this call
};
[[gnu::cold, gnu::noinline]] int raise_missing(const Missing& what);

}  // namespace headway::api
