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

}  // namespace headway::api
