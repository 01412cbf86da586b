// Hosts: whether a job belongs on this machine, which mpiexec serves itself, or on others, whose
// ranks an engine starts (engine.h): by the names that the user gives, else by what a batch system
// or an operator gave to this job. Thread: none. Invariant: nobody is asked over a network, and no
// name is looked up.
#pragma once
#include <string>
#include <vector>

#include "plan.h"

namespace headway::launcher {

// "" and where the job belongs; or why it cannot start at all.
std::string find_place(const std::vector<std::string>& host_lists,
                       const std::vector<std::string>& host_files, Place& place);

std::string host_name();

}  // namespace headway::launcher
