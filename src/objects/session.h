// Session: one use of MPI by a part of the program. Thread: any; what changes after creation (the
// handler, the buffer) is changed by the user's own calls. Owner: reference counted: the handle,
// and every group that comes from it. Invariant: while its handle is valid, the process's rooms are
// up.
#pragma once
#include <atomic>
#include <cstdint>

#include "objects/errhandler.h"

namespace headway::objects {

struct Session {
  std::atomic<uint32_t> references{1};
  uintptr_t handle = 0;
  Errhandler* errhandler = nullptr;
  void* buffer = nullptr;  // of buffered sends in its communicators
  int thread_level = 0;

  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
};

// Takes a reference away; the last one frees it.
void release(Session* session);

}  // namespace headway::objects
