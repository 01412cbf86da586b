// What the calls about processes of other jobs share with those of the start and with those that
// free communicators. Thread: any application thread, without the engine. Owns nothing. Invariant:
// the handle of the parents is that of a communicator, or was.
#pragma once
#include "api/detail/comms.h"
#include "spawn/part.h"

namespace headway::api {

spawn::Home home();
// In MPI_Init of ranks that were spawned: they meet their parents. Ends the job if that fails.
void meet_parents(const char* call);
// The handle of the parents' communicator, or that of none.
uintptr_t parents();

// Whether somebody of another job is in it.
bool crosses_jobs(const objects::Comm& comm);
// Before jobs are disconnected: all ranks of the communicator have come so far.
int part(const Story& story);
// Frees it (drop()), and closes what leads to jobs that nobody here talks with any more.
void drop_across(objects::Comm* comm);

}  // namespace headway::api
