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

// What a rank has folded so far, as steps are made. It lies in the send buffer until something is
// folded on it: then the other's vector lands where the result is to be, and is folded there. So
// nothing is copied first, and mostly there is nothing to land in between. In place, and with a
// function of the program (which may write to both its operands), it lies with the result at once.
class Partial {
 public:
  // `into`: where the result is to be; without a type, memory of the schedule if need be.
  Partial(Schedule& schedule, Team team, const Data& in, const Data& into);

  // The elements [low, high), where they lie now.
  Data part(uint64_t low, uint64_t high) const { return now_.part(low, high - low); }
  const Data& all() const { return now_; }
  bool is_with_result() const { return with_result_; }
  // The step after which they are there.
  StepId ready();

  // Sends those elements to `rank`, once they are ready.
  StepId give(int rank, uint64_t low, uint64_t high) {
    return schedule_.send(team_, rank, part(low, high).memory(), ready());
  }
  // Those of `rank` are folded on ours, which are all that is left. `sent`: a step that must be
  // over before the fold, or no_step. Returns their arrival.
  StepId take(int rank, uint64_t low, uint64_t high, StepId sent = no_step);
  // They come from `rank` as they are to be, after what arrives from it by `taken`. `sent`: a step
  // that reads what they overwrite, if that lies with the result.
  void adopt(int rank, uint64_t low, uint64_t high, StepId sent, StepId taken = no_step);
  // Where nobody folded anything, the result is a copy.
  void settle();

 private:
  bool make(Data& data) const;

  Schedule& schedule_;
  Team team_;
  Data into_, now_, heard_;
  bool with_result_ = false;
  // What is ready when both are over. They are joined only where something follows: the last
  // receives of a call may be released early (Schedule::left_at).
  StepId ready_ = no_step, beside_ = no_step;
};

// The ranks' vectors become their fold, on every rank. Returns the last step.
StepId allreduce_doubling(Schedule& schedule, Team team, Partial& partial);

// The ranks' vectors folded into `out` at the root; elsewhere `out` means nothing. Returns the last
// step, at the root that of the result.
StepId reduce_binomial(Schedule& schedule, Team team, const Data& in, const Data& out, int root);

// Elements low .. high - 1 of a vector.
struct Range {
  uint64_t low, high;
};
// Those that a position (Fold) has folded after halving.
Range halved(const Fold& fold, int position, uint64_t count);
// Halving: the ranks' vectors are folded, and each that acts for a position ends with its range of
// them. Returns the last step.
StepId reduce_halving(Team team, Partial& partial);

// A schedule that knows its reduction and keeps its operation and type.
Schedule* make_reduction(const Place& place, Kind kind, const Data& in, const Reduction& reduction);

}  // namespace headway::collectives
