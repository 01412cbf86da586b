// What the environment says about who started this process. Thread: called once from open(), while
// the program is still single-threaded as far as it concerns us (it reads the environment).
// Invariant: a process that some launcher started as one of many is never taken for a singleton.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headway::bootstrap {

enum class Seen : uint8_t {
  nothing,     // alone
  pmi_fd,      // PMI-1 on an inherited socket
  pmi_port,    // PMI-1, the launcher listens at a host:port
  pmix,        // a PMIx server
  unspeakable  // a launcher whose protocol we do not have; the text says what to do
};

struct Environment {
  Seen seen = Seen::nothing;
  int fd = -1;              // pmi_fd
  int rank = -1;            // pmi_fd; pmi_port gives the id to introduce ourselves with
  int size = -1;            // pmi_fd
  const char* port = "";    // pmi_port: host:port
  const char* name = "";    // the launcher's name as users know it, for pmix and unspeakable
  const char* remedy = "";  // the command to use instead
};

Environment read_environment();

// After a successful open: programs that this process starts are singletons of their own (a rank
// may call system()), unless a launcher in between sets the variables anew.
void mark_environment_used();

// The process that started another one, or has taken it up; 0 where /proc does not tell.
long parent_of(long pid);

}  // namespace headway::bootstrap
