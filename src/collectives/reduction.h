// What the reductions share: memory for elements, and the fixed tree (fold.h) as steps.
// Thread: an application thread that builds a schedule. Owns nothing.
#pragma once
#include "base/vec.h"
#include "collectives/collectives.h"
#include "collectives/fold.h"

namespace headway::collectives {

// Memory of the schedule for elements like those of `data`; null buffer without memory.
Data element_scratch(Schedule& schedule, const Data& data);

// One rank's elements, and the step after which they are there.
struct Operand {
  void* buffer;
  StepId ready;
};
// Folds the operands of ranks 0 .. size - 1 along the fixed tree, in their buffers. The result is
// in the buffer of the last one; the first one's buffer is only read.
StepId fold_operands(Schedule& schedule, base::Vec<Operand>& operands, uint64_t count);

// Gets the operands of all ranks to this one: `own` from where it lies, those of others in scratch
// memory. Sends nothing. False without memory.
bool receive_operands(Schedule& schedule, Team team, const Data& own, StepId own_ready,
                      base::Vec<Operand>& operands);

// The ranks' vectors in `part` become their fold, on every rank. Returns the last step.
StepId allreduce_doubling(Schedule& schedule, Team team, const Data& part, StepId ready);

// The ranks' vectors folded into `out` at the root; elsewhere `out` means nothing. Returns the last
// step, at the root that of the result.
StepId reduce_binomial(Schedule& schedule, Team team, const Data& in, const Data& out, int root);

// Elements low .. high - 1 of a vector.
struct Range {
  uint64_t low, high;
};
// Those that a position (Fold) has folded after halving.
Range halved(const Fold& fold, int position, uint64_t count);
// Halving: the ranks' vectors in `part` are folded, and each that acts for a position ends with its
// range of them. Returns the last step.
StepId reduce_halving(Schedule& schedule, Team team, const Data& part, StepId ready);

// A schedule that knows its reduction and keeps its operation and type.
Schedule* make_reduction(const Place& place, Kind kind, const Data& in, const Reduction& reduction);

}  // namespace headway::collectives
