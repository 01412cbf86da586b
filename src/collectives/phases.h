// Phases: parts of algorithms that are put together to others: what the ranks of one team do before
// or after something else happens. Thread: an application thread that builds a schedule. Owns
// nothing. Invariants: the steps that a phase returns are done when its result is there, and what
// it sends is launched before what waits for them; between two ranks each phase keeps the order of
// its messages.
#pragma once
#include "collectives/collectives.h"

namespace headway::collectives {

// Every rank's last step is done when all have come here: rounds of doubling distance.
StepId disseminate(Schedule& schedule, Team team);

// Packed blocks travel up a tree. At the root `packed` then holds those of all ranks, in order from
// its own on; elsewhere it is of no use. no_step at a rank that has nobody below it.
StepId collect(Schedule& schedule, Team team, const UserMemory& own, int root, char*& packed);

// The same downwards: when `ready`, the root has the blocks in `packed`. Each rank's own one is
// copied to `out`, if that has a type.
void deal(Schedule& schedule, Team team, uint64_t block, const Data& out, int root, char* packed,
          StepId ready);

}  // namespace headway::collectives
