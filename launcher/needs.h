// `mpiexec --check PROGRAM`: which functions of MPI a program and its libraries need, and which of
// them this library does not have. Thread: none. The program is not executed: the loader is asked
// which libraries it would bring in, and all files are read. Invariant: a function that is there
// and not written yet is told and is no fault, since a call to it is an error of MPI and nothing
// else.
#pragma once
#include <string>

#include "plan.h"

namespace headway::launcher {

// Prints what is missing for `path`, a program or a library; true if that keeps nobody from running
// it.
bool check_needs(const Plan& plan, const Section& section, const std::string& path);

}  // namespace headway::launcher
