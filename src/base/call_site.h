// Call site: where in the program this thread's MPI call stands. Set by the entries of api/ in
// which a receive may be released early, read by whoever learns from that. Thread: its own.
// Owner: the thread. Invariant: only compared, never followed.
#pragma once
#include <cstdint>

namespace headway::base {

extern constinit thread_local uintptr_t call_site;

}  // namespace headway::base
