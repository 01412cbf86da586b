// Allocation: the machines that a batch system, or an operator of Kubernetes, gave to the job in
// which mpiexec runs, by the variables that each leaves. Thread: none. Invariant: but for Flux,
// which has no such variable and is asked, nothing is started for it.
#pragma once
#include <string>

#include "plan.h"

namespace headway::launcher {

struct Allocation {
  std::string whose;  // for people: "this PBS job"; empty: there is none
  Manager manager = Manager::none;
  int machines = 1;
  std::string only;     // its only machine, if that may be another one than this
  HostList list;        // empty: the manager knows them
  int slots = 0;        // ranks that were asked for with them; 0: not known
  std::string refusal;  // why mpiexec starts nothing
};

Allocation find_allocation();

// Who starts processes on machines that the user names: slurm or flux within their jobs.
Manager manager_here();

// How many ranks Slurm's job was made for; 0: not known.
int slots_of_slurm();

}  // namespace headway::launcher
