// The environment of the ranks. Thread: none. Invariant: nothing of a launcher that started mpiexec
// itself reaches them, so that no library takes a rank for a part of that outer job.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan.h"

namespace headway::launcher {

// Whether a variable of this name was left by a launcher around us, or by a library of a rank that
// has started us.
bool is_foreign(std::string_view name);

// The variables that all ranks of a section share; `library_folder` may be "". `threads` becomes
// OMP_NUM_THREADS where the user says nothing of it; 0 leaves that to the ranks' masks.
std::vector<std::string> section_environment(const Plan& plan, const Section& section,
                                             const std::string& library_folder, int threads);

// Adds those of one rank.
void add_rank_variables(std::vector<std::string>& environment, int rank, int ranks, int pmi);

}  // namespace headway::launcher
