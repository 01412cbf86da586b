// The command line of mpiexec: the dialects of the common launchers are translated to our own
// options, which CLI11 then checks. Thread: none. Invariant: a plan is returned only if everything
// in it was understood; otherwise the user has been told what was wrong.
#pragma once
#include <string>
#include <vector>

#include "plan.h"

namespace headway::launcher {

struct CommandLine {
  Plan plan;
  int exit_code = -1;  // -1: go on with the plan; else end with this code, all has been said
};

CommandLine parse_command_line(const std::vector<std::string>& words);

}  // namespace headway::launcher
