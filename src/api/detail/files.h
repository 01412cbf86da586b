// Files as handles, and what is told of their failures. Thread: any application thread, without the
// engine. Owner: each handle holds one reference. Invariant: a closed file's handle is refused;
// each failure is told to the file's handler once, with the file's name, the place and the rank.
#pragma once
#include "api/detail/call.h"
#include "io/file.h"
#include "io/operation.h"

namespace headway::api {

// What hears of errors of calls on no file, or on one that is not open yet: MPI_FILE_NULL's
// handler.
objects::Errhandler& handler_of_files();
// Finds the file of a handle, as story.file; raises MPI_ERR_FILE.
int take_file(Story& story, MPI_File handle);
// Refuses a collective call while a split one is under way.
int refuse_split(const Story& story);

inline io::Place place_of_files() {
  return {process().waiter(), registry(), [] { return process().new_context(); }};
}

int error_class_of(const io::Failure& failure);
// Tells of a failure with story.file, or the file of that name.
int raise(const Story& story, const io::Failure& failure, const char* name = nullptr);
// What all ranks have come to; `same`: the argument that they have to pass alike.
int conclude(const Story& story, const io::Ending& ending, const char* same,
             const char* name = nullptr);

// Before the session ends, or the world (null): its files that the program has not closed are told
// of, and closed.
void close_left_files(const char* call, const objects::Session* session);

// The data representation of that name, or null.
const io::Representation* find_representation(const char* name);

// --- requests of files (api/requests) ---

inline bool is_file(const protocols::Request* request) {
  return request->kind == protocols::RequestKind::file;
}
inline io::Operation* operation_of(const protocols::Request* request) {
  return is_file(request) ? &io::Operation::of(request) : nullptr;
}
// The status of a complete one, and its error code.
int show_file(const io::Operation& operation, MPI_Status* status);
// After its request is gone.
int raise_operation(const char* call, const io::Operation& operation);

}  // namespace headway::api
