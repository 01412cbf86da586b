// Requests as handles: an index into the engine's pool and its generation. Thread: any. Owns
// nothing. Invariant: a handle that was freed or made up is refused, never followed.
#pragma once
#include <atomic>

#include "api/detail/call.h"
#include "api/detail/status.h"
#include "protocols/request.h"

namespace headway::api {

inline MPI_Request handle_of_request(const protocols::Request* request) {
  return handle_of<MPI_Request>(uintptr_t(request->generation) << 32 | request->pool_index);
}
// Null for MPI_REQUEST_NULL and for what is not a request of a user.
inline protocols::Request* find_request(MPI_Request handle) {
  const uintptr_t value = value_of(handle);
  if (value >> 32 == 0) return nullptr;
  protocols::Request* request = process().find_request(uint32_t(value), uint32_t(value >> 32));
  return request && request->held_by_user ? request : nullptr;
}

// False: a persistent one that has not been started.
inline bool is_active(const protocols::Request* request) {
  return !request->persistent || request->started;
}
inline bool is_done(const protocols::Request* request) {
  return request->done.load(std::memory_order_acquire) != 0;  // pairs with Core::complete
}
// Raises that the handle is none of a request.
int bad_request(const char* call);
// Each is null or a request's handle, and the list can be read with the engine held.
int check_list(const char* call, int count, const MPI_Request* requests);

// Who is told of each request that is over, or null (api/request_ends.h).
extern constinit std::atomic<void (*)(MPI_Request)> ends_told;

// Ends a complete request for its user: fills the status (MPI_ERROR untouched), frees it or makes
// it inactive, and gives back its error code without telling any handler.
int retire(protocols::Request* request, MPI_Request* handle, MPI_Status* status);
// Tells the handler of the story's communicator. The story's call is the completing one; its peer
// and tag come from the status.
int raise_for(Story story, const p2p::Status& status, Outcome outcome);

// Stores a new request's handle, or raises MPI_ERR_NO_MEM if there is none.
int hand_out(const Story& story, protocols::Request* request, MPI_Request* handle);

}  // namespace headway::api
