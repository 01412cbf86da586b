// What `mpiexec --info` and `--version` print. Thread: none.
#pragma once
#include "plan.h"

namespace headway::launcher {

void print_version();
void print_info(const Plan& plan);

}  // namespace headway::launcher
