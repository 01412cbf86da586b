// Generalized requests: operations that the program completes itself; we call its functions.
// Thread: application threads, without the engine. Owner: the request has one Generalized, which
// goes with it. Invariant: the free function runs once, after the request is complete and freed.
#pragma once
#include "api/detail/requests.h"

namespace headway::api {

struct Generalized {
  MPI_Grequest_query_function* query;
  MPI_Grequest_free_function* release;
  MPI_Grequest_cancel_function* cancel;
  void* extra;
};

inline bool is_generalized(const protocols::Request* request) {
  return request->kind == protocols::RequestKind::generalized;
}
inline Generalized* generalized_of(const protocols::Request* request) {
  return is_generalized(request) ? static_cast<Generalized*>(request->owner) : nullptr;
}
// Asks the program for the status of a complete one (MPI_ERROR untouched), and its error code.
int query_generalized(const Generalized& generalized, MPI_Status* status);
// After its request is gone. The free function's error code.
int free_generalized(Generalized* generalized);

}  // namespace headway::api
