// Session: one use of MPI by a part of the program. Thread: any; what changes after creation (the
// handler) is changed by the user's own calls. Owner: its handle. Invariant: while one exists, the
// process's rooms do.
#pragma once
#include <cstdint>

#include "objects/errhandler.h"

namespace headway::objects {

struct Session {
  uintptr_t handle = 0;
  Errhandler* errhandler = nullptr;
  int thread_level = 0;
};

}  // namespace headway::objects
