// Reduce and allreduce along the fixed tree.
#include "collectives/collectives.h"
#include "collectives/fold.h"

namespace headway::collectives {
namespace {

// A buffer for `data` whose first element's address fits the type's lower bound.
char* element_scratch(Schedule& schedule, const Data& data) {
  const datatypes::Type& type = *data.type;
  const int64_t span =
      data.count ? int64_t(data.count - 1) * type.extent() + type.true_extent() : 0;
  char* memory = schedule.scratch(uint64_t(span));
  return memory ? memory - type.true_lb() : nullptr;
}

}  // namespace

Schedule* reduce(protocols::Engine& engine, objects::Comm* comm, const Data& in, const Data& out,
                 const Reduction& reduction, int root) {
  Schedule* schedule = Schedule::make(engine, comm, Kind::reduce);
  if (!schedule) return nullptr;
  schedule->reduction = reduction;
  schedule->keep(in.type);
  schedule->keep(const_cast<objects::Op*>(reduction.op));
  const Fold fold(comm->size);
  const int rank = comm->rank;
  const bool is_root = rank == root;
  // The partial result: at the root in its buffer, elsewhere in scratch memory.
  Data part = is_root ? out : Data{element_scratch(*schedule, in), in.count, in.type};
  Data heard{element_scratch(*schedule, in), in.count, in.type};
  if (schedule->failed()) return schedule;
  StepId ready = no_step;
  if (part.buffer != in.buffer) ready = schedule->copy(in.memory(), part.memory());

  // The second of a pair gives its part away; if it is the root, it gets the result back.
  const int root_first = fold.is_second_of_pair(root) ? root - 1 : root;
  if (fold.is_second_of_pair(rank)) {
    const StepId sent = schedule->send(rank - 1, part.memory(), ready);
    if (is_root) schedule->receive(rank - 1, part.memory(), sent);
    return schedule;
  }
  if (fold.is_first_of_pair(rank)) {
    const StepId arrived = schedule->receive(rank + 1, heard.memory());
    const StepId combined =
        schedule->reduce(heard.buffer, part.buffer, part.count, true, ready);
    schedule->depends(combined, arrived);
    ready = combined;
  }
  const int self = fold.position(rank), goal = fold.position(root_first);
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const int other = fold.rank(self ^ distance);
    if ((self ^ goal) & distance) {
      schedule->send(other, part.memory(), ready);
      return schedule;
    }
    const StepId arrived = schedule->receive(other, heard.memory(), ready);
    ready = schedule->reduce(heard.buffer, part.buffer, part.count, other > rank, arrived);
  }
  if (root != root_first) schedule->send(root, part.memory(), ready);
  return schedule;
}

Schedule* allreduce(protocols::Engine& engine, objects::Comm* comm, const Data& in,
                    const Data& out, const Reduction& reduction) {
  Schedule* schedule = Schedule::make(engine, comm, Kind::allreduce);
  if (!schedule) return nullptr;
  schedule->reduction = reduction;
  schedule->keep(in.type);
  schedule->keep(const_cast<objects::Op*>(reduction.op));
  const Fold fold(comm->size);
  const int rank = comm->rank;
  Data heard{element_scratch(*schedule, in), in.count, in.type};
  if (schedule->failed()) return schedule;
  StepId ready = no_step;
  if (out.buffer != in.buffer) ready = schedule->copy(in.memory(), out.memory());
  if (fold.is_second_of_pair(rank)) {
    const StepId sent = schedule->send(rank - 1, out.memory(), ready);
    schedule->receive(rank - 1, out.memory(), sent);
    return schedule;
  }
  if (fold.is_first_of_pair(rank)) {
    const StepId arrived = schedule->receive(rank + 1, heard.memory());
    const StepId combined = schedule->reduce(heard.buffer, out.buffer, out.count, true, ready);
    schedule->depends(combined, arrived);
    ready = combined;
  }
  // Recursive doubling, nearest first. A step's reduction waits for its own send, too: the send
  // reads what the reduction overwrites.
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const int other = fold.rank(fold.position(rank) ^ distance);
    const StepId sent = schedule->send(other, out.memory(), ready);
    const StepId arrived = schedule->receive(other, heard.memory(), ready);
    ready = schedule->reduce(heard.buffer, out.buffer, out.count, other > rank, arrived);
    schedule->depends(ready, sent);
  }
  if (fold.is_first_of_pair(rank)) schedule->send(rank + 1, out.memory(), ready);
  return schedule;
}

}  // namespace headway::collectives
