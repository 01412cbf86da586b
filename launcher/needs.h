// `mpiexec --check PROGRAM`: which functions of MPI a program and its libraries need, and which of
// them this library does not have. Thread: none. The program is not executed: the loader is asked
// which libraries it would bring in, and all files are read.
#pragma once
#include <string>

#include "plan.h"

namespace headway::launcher {

// Prints what is missing in the program at `path`, a program or a library; true if it is nothing.
bool check_needs(const Plan& plan, const Section& section, const std::string& path);

}  // namespace headway::launcher
