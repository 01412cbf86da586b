// Held: what is needed to tell the error of a request after that is gone. Thread: the application
// thread that completes the request, without the engine. Owner: one call. Invariant: what hold()
// has kept, let_go() gives back.
#pragma once
#include "api/detail/files.h"
#include "api/detail/grequest.h"
#include "api/detail/requests.h"

namespace headway::api {

struct Held {
  protocols::Request* request;
  objects::Comm* comm;
  p2p::Status status;
  Outcome outcome;
  bool receives = false;
  io::Operation* file = nullptr;  // instead of all of that
};

inline Held hold(protocols::Request* request) {
  Held held{request, static_cast<objects::Comm*>(request->communicator), {}, request->outcome};
  if (generalized_of(request)) held.comm = nullptr;  // its error has no handler to tell
  if (held.outcome == Outcome::ok) return held;
  held.file = operation_of(request);
  if (held.file) {
    held.file->retain();
    held.comm = nullptr;
    return held;
  }
  p2p::read_status(*request, held.status);
  held.receives = request->kind == protocols::RequestKind::receive;
  if (held.comm) held.comm->retain();
  return held;
}

inline int raise_held(const char* call, const Held& held) {
  if (held.file) return raise_operation(call, *held.file);
  return raise_for({.call = call, .comm = held.comm, .receives = held.receives}, held.status,
                   held.outcome);
}

inline void let_go(const Held& held) {
  if (held.comm) objects::release(held.comm);
  if (held.file) held.file->release();
}

}  // namespace headway::api
