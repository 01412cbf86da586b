// What calls that make and free communicators share. Thread: any application thread, without the
// engine. Owns nothing. Invariant: none.
#pragma once
#include "api/detail/call.h"
#include "communicators/communicators.h"

namespace headway::api {

inline communicators::Makers makers() {
  return {process().waiter(), registry(), [] { return process().new_context(); }};
}

// Frees one: the handle is gone at once, while operations in progress keep the communicator.
void drop(objects::Comm* comm);

// What a communicator's handle ended with if the program did not free it.
inline constexpr uint32_t ended_with_world = 1, ended_with_session = 2;
// The communicators that the program has not freed end with what they were made in: the session,
// or null: MPI_COMM_WORLD and MPI_COMM_SELF. What is still on its way in them arrives.
void end_comms(const objects::Session* session);

}  // namespace headway::api
