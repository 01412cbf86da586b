// Reduce_scatter along the fixed tree.
#include "collectives/inter.h"
#include "collectives/reduction.h"

namespace headway::collectives {
namespace {

// Where the blocks of the ranks begin in a vector that holds them side by side.
using Starts = base::Vec<uint64_t>;

struct Split {
  Team team;
  Data in;
  void* out;
  const Starts& starts;

  uint64_t count(int rank) const { return starts[size_t(rank) + 1] - starts[size_t(rank)]; }
  Data block(const Data& vector, int rank) const {
    return vector.part(starts[size_t(rank)], count(rank));
  }
  Data result() const { return {out, count(team.self), in.type}; }
};

// Everyone gets everyone's elements of its own block, and folds them.
void direct(Schedule& schedule, const Split& split) {
  const Team team = split.team;
  const int rank = team.self, size = team.size;
  const StepId sent = schedule.join();
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size;
    schedule.depends(sent, schedule.send(team, to, split.block(split.in, to).memory()));
  }
  const Data mine = split.block(split.in, rank);
  const Data own = element_scratch(schedule, mine);
  base::Vec<Operand> operands;
  if (schedule.failed() ||
      !receive_operands(schedule, team, own, schedule.copy(mine.memory(), own.memory()),
                        operands)) {
    schedule.fail();
    return;
  }
  const StepId folded = fold_operands(schedule, operands, mine.count);
  const Data result{operands.back().buffer, mine.count, mine.type};
  schedule.depends(schedule.copy(result.memory(), split.result().memory(), folded), sent);
}

// Everything to everyone; each keeps its block.
void doubling(Schedule& schedule, const Split& split) {
  Partial partial(schedule, split.team, split.in, {});
  const StepId done = allreduce_doubling(schedule, split.team, partial);
  if (schedule.failed()) return;
  const Data block = split.block(partial.all(), split.team.self);
  schedule.copy(block.memory(), split.result().memory(), done);
}

int reversed(int position, int power) {
  int result = 0;
  for (int bit = 1; bit < power; bit *= 2) result = result * 2 + ((position & bit) ? 1 : 0);
  return result;
}

// Halving, nearest first. The blocks are put in the bit-reversed order of their positions, so that
// what a position keeps stays in one piece: bit k of the position picks the half in round k.
void halving(Schedule& schedule, const Split& split) {
  const Team team = split.team;
  const Fold fold(team.size);
  const int rank = team.self;
  if (fold.is_second_of_pair(rank)) {
    const StepId sent = schedule.send(team, rank - 1, split.in.memory());
    schedule.receive(team, rank - 1, split.result().memory(), sent);
    return;
  }
  Starts order;  // where the blocks of slot i begin
  const Data part = element_scratch(schedule, split.in);
  const Data heard = element_scratch(schedule, split.in);
  if (schedule.failed() || !order.resize(size_t(fold.power) + 1)) {
    schedule.fail();
    return;
  }
  const bool leads = fold.is_first_of_pair(rank);
  const StepId arrived = leads ? schedule.receive(team, rank + 1, heard.memory()) : no_step;
  StepId ready = schedule.join();
  uint64_t at = 0;
  for (int slot = 0; slot < fold.power; ++slot) {
    const int position = reversed(slot, fold.power), first = fold.rank(position);
    order[size_t(slot)] = at;
    // A first of a pair keeps the second's block, which lies next to its own.
    const uint64_t from = split.starts[size_t(first)];
    const uint64_t count = split.starts[size_t(first) + (position < fold.pairs ? 2 : 1)] - from;
    const Data place = part.part(at, count);
    StepId placed = schedule.copy(split.in.part(from, count).memory(), place.memory());
    if (leads) {
      placed = schedule.reduce(heard.part(from, count).buffer, place.buffer, count, true, placed);
      schedule.depends(placed, arrived);
    }
    schedule.depends(ready, placed);
    at += count;
  }
  order[size_t(fold.power)] = at;
  const int self = fold.position(rank);
  int low = 0, high = fold.power;
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const int other = fold.rank(self ^ distance);
    const int middle = low + (high - low) / 2;
    const auto slots = [&](const Data& data, int first, int end) {
      return data.part(order[size_t(first)], order[size_t(end)] - order[size_t(first)]);
    };
    const bool keeps_upper = self & distance;
    schedule.send(team, other,
                  (keeps_upper ? slots(part, low, middle) : slots(part, middle, high)).memory(),
                  ready);
    (keeps_upper ? low : high) = middle;
    const Data mine = slots(part, low, high), theirs = slots(heard, low, high);
    const StepId came = schedule.receive(team, other, theirs.memory(), ready);
    ready = schedule.reduce(theirs.buffer, mine.buffer, mine.count, other > rank, came);
  }
  const Data mine = part.part(order[size_t(low)], split.count(rank));
  schedule.copy(mine.memory(), split.result().memory(), ready);
  if (leads) {
    const Data second = part.part(order[size_t(low)] + mine.count, split.count(rank + 1));
    schedule.send(team, rank + 1, second.memory(), ready);
  }
}

Schedule* build(const Place& place, Kind kind, const Data& in, void* out, const Starts& starts,
                const Reduction& reduction) {
  if (place.is_inter()) return inter::reduce_scatter(place, kind, in, out, starts, reduction);
  Schedule* schedule = make_reduction(place, kind, in, reduction);
  if (!schedule) return nullptr;
  const Split split{place.team(), in, out, starts};
  switch (place.choose(kind, in.bytes())) {
    case Algorithm::doubling: doubling(*schedule, split); break;
    case Algorithm::halving: halving(*schedule, split); break;
    default: direct(*schedule, split);
  }
  return schedule;
}

}  // namespace

Schedule* reduce_scatter(const Place& place, const Data& in, void* out, datatypes::Integers counts,
                         const Reduction& reduction) {
  const size_t size = size_t(place.team().size);
  Starts starts;
  if (!starts.resize(size + 1)) return nullptr;
  for (size_t rank = 0; rank < size; ++rank) {
    starts[rank + 1] = starts[rank] + uint64_t(counts[rank]);
  }
  return build(place, Kind::reduce_scatter, in, out, starts, reduction);
}

Schedule* reduce_scatter_block(const Place& place, const Data& in, void* out, uint64_t count,
                               const Reduction& reduction) {
  const size_t size = size_t(place.team().size);
  Starts starts;
  if (!starts.resize(size + 1)) return nullptr;
  for (size_t rank = 0; rank <= size; ++rank) starts[rank] = count * rank;
  return build(place, Kind::reduce_scatter_block, in, out, starts, reduction);
}

}  // namespace headway::collectives
