// Launch: starts the processes of a new job: by the mpiexec that lies beside this library, which
// gets the parents' port in its environment and passes it on to its ranks. So a job may spawn
// whatever has started it, and the new ranks are looked after as those of any job. Thread: any
// application thread; `has_ended` with the engine held. Owner: the caller, on whose stack it lives;
// the processes that were started belong to the room. Invariants: none of this process's
// descriptors beyond stdout and stderr reach them; nobody waits for one that has ended: those are
// taken from the system at the next chance.
#pragma once
#include <cstddef>
#include <cstdint>
#include <sys/types.h>

#include "base/text.h"
#include "spawn/trouble.h"

namespace headway::spawn {

// In the environment of mpiexec, and of the ranks that it starts for a spawn.
inline constexpr char port_for_launcher[] = "HEADWAY_SPAWN_PORT";
inline constexpr char job_for_launcher[] = "HEADWAY_SPAWN_JOB";
inline constexpr char port_of_parents[] = "HEADWAY_PARENT_PORT";

struct Program {
  const char* command = nullptr;
  char* const* arguments = nullptr;  // ends in null; null: none
  int ranks = 0;
  // Of the info object; null: not given.
  const char* directory = nullptr;
  const char* path = nullptr;
  const char* host = nullptr;
  const char* soft = nullptr;
};

class Launch {
 public:
  using Story = base::Text<500>;

  // `job`: what the new job is to be called.
  Trouble start(const Program* programs, size_t count, const char* port, const char* job);
  // The mpiexec has ended.
  bool has_ended();
  // Why it did not start, or how it ended.
  const Story& story() const { return story_; }

 private:
  pid_t pid_ = -1;
  Story story_;
};

}  // namespace headway::spawn
