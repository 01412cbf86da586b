// Starts the process of one rank. Thread: the launcher's only one (the child borrows its memory
// until it executes the program). Invariant: a rank never outlives mpiexec by its own fault: it is
// killed with its parent, and leads a process group that can be ended as one.
#pragma once
#include <sched.h>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace headway::launcher {

struct ChildRecipe {
  std::string path;
  std::vector<std::string> arguments;    // the program's name first
  std::vector<std::string> environment;  // NAME=VALUE
  std::string directory;                 // "" stays here
  int input = -1;                        // -1 inherits mpiexec's own
  int output = -1;
  int errors = -1;
  int pmi = -1;
  int watchdog = -1;  // where a rank says itself that its group is to be watched
  bool own_group = true;
  std::vector<unsigned char> cores;  // a cpu_set_t, or empty: not bound
};

// What mpiexec changed for itself and its ranks must not see.
struct OriginalState {
  sigset_t signal_mask;
  struct sigaction broken_pipe;
  rlimit descriptors;
};

struct StartedChild {
  pid_t pid = -1;           // -1: it could not be started
  int error = 0;            // errno
  const char* failed = "";  // what failed, as in "cannot <failed>"
};

// The step of which the folder is to be named, not the program.
inline constexpr char entering[] = "enter its folder";

StartedChild start_child(const ChildRecipe& recipe, const OriginalState& original);

}  // namespace headway::launcher
