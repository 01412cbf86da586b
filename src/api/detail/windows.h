// Windows as handles, and what their calls check. Thread: any. Owns nothing. Invariants: a freed
// window's handle is refused; errors of a call on a window are told to its handler alone.
#pragma once
#include "api/detail/call.h"
#include "rma/window.h"

namespace headway::api {

// Finds the window of a handle, as story.window; raises MPI_ERR_WIN.
int take_window(Story& story, MPI_Win handle);
inline rma::Window& window_of(const Story& story) {
  return *static_cast<rma::Window*>(story.window);
}

// A target of the window: a rank, or MPI_PROC_NULL, where nothing is to be done. Raises
// MPI_ERR_RANK.
int check_target(Story& story, int rank);
// Raises MPI_ERR_RMA_SYNC, with what is wrong.
[[gnu::cold, gnu::noinline]] int raise_sync(const Story& story, const char* why,
                                            const char* remedy);

}  // namespace headway::api
