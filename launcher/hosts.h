// Hosts: mpiexec starts ranks on this machine only. Names of this machine are accepted; others,
// and an allocation of several machines, are refused with the command that does serve them.
#pragma once
#include <string>
#include <vector>

#include "plan.h"

namespace headway::launcher {

// "" if the job belongs here; else the sentence that says where it does.
std::string check_hosts(const std::vector<std::string>& host_lists,
                        const std::vector<std::string>& host_files, const Plan& plan);

std::string host_name();

}  // namespace headway::launcher
