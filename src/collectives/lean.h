// Lean: blocking collectives of a few bytes without a schedule: no memory is taken, and the
// messages go straight from and to the stack. The same messages in the same order as the schedule
// of the same algorithm, so that a rank whose buffer has gaps may follow its schedule among others
// that come here. Thread: any application thread; each function takes the engine itself and waits.
// Owns nothing. Invariant: false means that nothing was done and the caller has to make a schedule.
#pragma once
#include "collectives/collectives.h"

namespace headway::collectives {

bool barrier_now(const Place& place, waiting::Waiter& waiter, Outcome& outcome);
bool bcast_now(const Place& place, waiting::Waiter& waiter, const Data& data, int root,
               Outcome& outcome);
bool reduce_now(const Place& place, waiting::Waiter& waiter, const Data& in, const Data& out,
                const Reduction& reduction, int root, Outcome& outcome);
bool allreduce_now(const Place& place, waiting::Waiter& waiter, const Data& in, const Data& out,
                   const Reduction& reduction, Outcome& outcome);
bool allgather_now(const Place& place, waiting::Waiter& waiter, const Data& in, const Blocks& out,
                   Outcome& outcome);
bool alltoall_now(const Place& place, waiting::Waiter& waiter, const Blocks& in, const Blocks& out,
                  Outcome& outcome);
bool neighbor_allgather_now(const Place& place, waiting::Waiter& waiter, const Data& in,
                            const Blocks& out, Outcome& outcome);
bool neighbor_alltoall_now(const Place& place, waiting::Waiter& waiter, const Blocks& in,
                           const Blocks& out, Outcome& outcome);
// `out` (gather), `in` (scatter): at the root alone.
bool gather_now(const Place& place, waiting::Waiter& waiter, const Data& in, const Blocks& out,
                int root, Outcome& outcome);
bool scatter_now(const Place& place, waiting::Waiter& waiter, const Blocks& in, const Data& out,
                 int root, Outcome& outcome);

}  // namespace headway::collectives
