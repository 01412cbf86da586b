// Reduce and allreduce along the fixed tree.
#include "collectives/inter.h"
#include "collectives/reduction.h"

namespace headway::collectives {

Schedule* make_reduction(const Place& place, Kind kind, const Data& in,
                         const Reduction& reduction) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, kind);
  if (!schedule) return nullptr;
  schedule->reduction = reduction;
  schedule->keep(in.type);
  schedule->keep(const_cast<objects::Op*>(reduction.op));
  return schedule;
}

Data element_scratch(Schedule& schedule, const Data& data) {
  const datatypes::Span span = datatypes::span(*data.type, data.count);
  char* memory = schedule.scratch(uint64_t(span.high - span.low));
  return {memory ? base::moved(memory, -span.low) : nullptr, data.count, data.type};
}

StepId fold_operands(Schedule& schedule, base::Vec<Operand>& operands, uint64_t count) {
  const Fold fold(int(operands.size()));
  // The result of a subtree lies with its last rank.
  const auto combine = [&](int lower, int upper) {
    Operand& into = operands[size_t(upper)];
    const Operand& from = operands[size_t(lower)];
    const StepId step = schedule.reduce(from.buffer, into.buffer, count, false, from.ready);
    schedule.depends(step, into.ready);
    into.ready = step;
  };
  for (int pair = 0; pair < fold.pairs; ++pair) combine(2 * pair, 2 * pair + 1);
  const auto holder = [&](int position) {
    return position < fold.pairs ? 2 * position + 1 : position + fold.pairs;
  };
  for (int distance = 1; distance < fold.power; distance *= 2) {
    for (int position = 0; position < fold.power; position += 2 * distance) {
      combine(holder(position + distance - 1), holder(position + 2 * distance - 1));
    }
  }
  return operands.back().ready;
}

bool receive_operands(Schedule& schedule, Team team, const Data& own, StepId own_ready,
                      base::Vec<Operand>& operands) {
  for (int rank = 0; rank < team.size; ++rank) {
    Operand operand{own.buffer, own_ready};
    if (rank != team.self) {
      const Data heard = element_scratch(schedule, own);
      if (schedule.failed()) return false;
      operand = {heard.buffer, schedule.receive(team, rank, heard.memory())};
    }
    if (!operands.push(operand)) return false;
  }
  return true;
}

namespace {

// The second of a pair gives its vector to the first, who folds it into `part`.
StepId join_pair(Schedule& schedule, Team team, const Data& part, const Data& heard, StepId ready) {
  const StepId arrived = schedule.receive(team, team.self + 1, heard.memory());
  const StepId combined = schedule.reduce(heard.buffer, part.buffer, part.count, true, ready);
  schedule.depends(combined, arrived);
  return combined;
}

}  // namespace

StepId reduce_binomial(Schedule& schedule, Team team, const Data& in, const Data& out, int root) {
  const Fold fold(team.size);
  const int rank = team.self;
  const bool is_root = rank == root;
  // The partial result: at the root in its buffer, elsewhere in scratch memory.
  const Data part = is_root ? out : element_scratch(schedule, in);
  const Data heard = element_scratch(schedule, in);
  if (schedule.failed()) return no_step;
  StepId ready = no_step;
  if (part.buffer != in.buffer) ready = schedule.copy(in.memory(), part.memory());

  // If the second of a pair is the root, it gets the result back from the first.
  const int root_first = fold.is_second_of_pair(root) ? root - 1 : root;
  if (fold.is_second_of_pair(rank)) {
    const StepId sent = schedule.send(team, rank - 1, part.memory(), ready);
    return is_root ? schedule.receive(team, rank - 1, part.memory(), sent) : sent;
  }
  if (fold.is_first_of_pair(rank)) ready = join_pair(schedule, team, part, heard, ready);
  const int self = fold.position(rank), goal = fold.position(root_first);
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const int other = fold.rank(self ^ distance);
    if ((self ^ goal) & distance) {
      return schedule.send(team, other, part.memory(), ready);
    }
    const StepId arrived = schedule.receive(team, other, heard.memory(), ready);
    ready = schedule.reduce(heard.buffer, part.buffer, part.count, other > rank, arrived);
  }
  if (root != root_first) schedule.send(team, root, part.memory(), ready);
  return ready;
}

namespace {

// Everyone in `gets` (the root, or all) receives all vectors and folds them itself.
void fold_direct(Schedule& schedule, Team team, const Data& in, const Data& out, int root) {
  const int rank = team.self, size = team.size;
  const bool gets = root < 0 || rank == root;
  const StepId sent = schedule.join();
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size;
    if (root < 0 || to == root) schedule.depends(sent, schedule.send(team, to, in.memory()));
  }
  if (!gets) return;
  const Data own = element_scratch(schedule, in);
  base::Vec<Operand> operands;
  if (schedule.failed() ||
      !receive_operands(schedule, team, own, schedule.copy(in.memory(), own.memory()), operands)) {
    schedule.fail();
    return;
  }
  const StepId folded = fold_operands(schedule, operands, in.count);
  const Data result{operands.back().buffer, in.count, in.type};
  // In place, the vector must have left before the result overwrites it.
  schedule.depends(schedule.copy(result.memory(), out.memory(), folded), sent);
}

}  // namespace

Range halved(const Fold& fold, int position, uint64_t count) {
  Range range{0, count};
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const uint64_t middle = range.low + (range.high - range.low) / 2;
    (position & distance ? range.low : range.high) = middle;
  }
  return range;
}

namespace {

// One step of halving.
struct Level {
  uint64_t low, high;  // what was folded on before it
  StepId sent;         // the half that was given away
};

// Each step halves the range that a position folds on, until it is what halved() says. Every
// element sees the fixed tree.
StepId halve(Schedule& schedule, Team team, const Data& part, StepId ready, Level (&levels)[32]) {
  const Fold fold(team.size);
  const Data heard = element_scratch(schedule, part);
  if (schedule.failed()) return no_step;
  if (fold.is_first_of_pair(team.self)) ready = join_pair(schedule, team, part, heard, ready);
  int level = 0;
  const int self = fold.position(team.self);
  uint64_t low = 0, high = part.count;
  for (int distance = 1; distance < fold.power; distance *= 2, ++level) {
    const int other = fold.rank(self ^ distance);
    const uint64_t middle = low + (high - low) / 2;
    const bool keeps_upper = self & distance;
    const Data given =
        keeps_upper ? part.part(low, middle - low) : part.part(middle, high - middle);
    levels[level] = {low, high, schedule.send(team, other, given.memory(), ready)};
    (keeps_upper ? low : high) = middle;
    const Data mine = part.part(low, high - low), theirs = heard.part(low, high - low);
    const StepId arrived = schedule.receive(team, other, theirs.memory(), ready);
    ready = schedule.reduce(theirs.buffer, mine.buffer, mine.count, other > team.self, arrived);
  }
  return ready;
}

// Halving; then doubling puts the pieces together again, farthest first.
void allreduce_halving(Schedule& schedule, Team team, const Data& part, StepId ready) {
  const Fold fold(team.size);
  const int rank = team.self;
  if (fold.is_second_of_pair(rank)) {
    const StepId sent = schedule.send(team, rank - 1, part.memory(), ready);
    schedule.receive(team, rank - 1, part.memory(), sent);
    return;
  }
  Level levels[32] = {};
  ready = halve(schedule, team, part, ready, levels);
  if (schedule.failed()) return;
  const int self = fold.position(rank);
  auto [low, high] = halved(fold, self, part.count);
  int level = 0;
  while (1 << level < fold.power) ++level;
  for (int distance = fold.power / 2; distance > 0; distance /= 2) {
    const Level& wide = levels[--level];
    const int other = fold.rank(self ^ distance);
    schedule.send(team, other, part.part(low, high - low).memory(), ready);
    const bool has_upper = self & distance;
    const Data rest =
        has_upper ? part.part(wide.low, low - wide.low) : part.part(high, wide.high - high);
    ready = schedule.receive(team, other, rest.memory(), ready);
    schedule.depends(ready, wide.sent);
    low = wide.low;
    high = wide.high;
  }
  if (fold.is_first_of_pair(rank)) schedule.send(team, rank + 1, part.memory(), ready);
}

// Pieces go round the ring and are folded on the way, then once more round. The order of operands
// differs from piece to piece: for exact, commutative operations only.
void allreduce_ring(Schedule& schedule, Team team, const Data& part, StepId ready) {
  const int rank = team.self, size = team.size;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  const auto start = [&](int piece) {
    const uint64_t each = part.count / uint64_t(size), more = part.count % uint64_t(size);
    return each * uint64_t(piece) + (uint64_t(piece) < more ? uint64_t(piece) : more);
  };
  const auto piece_of = [&](const Data& data, int piece) {
    return data.part(start(piece), start(piece + 1) - start(piece));
  };
  const Data heard = element_scratch(schedule, part);
  if (schedule.failed()) return;
  for (int round = 0; round + 1 < size; ++round) {
    const int gives = (rank + size - round) % size, takes = (gives + size - 1) % size;
    const Data theirs = piece_of(heard, takes), mine = piece_of(part, takes);
    schedule.send(team, next, piece_of(part, gives).memory(), ready);
    const StepId arrived = schedule.receive(team, before, theirs.memory(), ready);
    ready = schedule.reduce(theirs.buffer, mine.buffer, mine.count, false, arrived);
  }
  for (int round = 0; round + 1 < size; ++round) {
    const int gives = (rank + 1 + size - round) % size, takes = (gives + size - 1) % size;
    schedule.send(team, next, piece_of(part, gives).memory(), ready);
    ready = schedule.receive(team, before, piece_of(part, takes).memory(), ready);
  }
}

bool may_reorder(const Reduction& reduction) {
  return reduction.kernel && datatypes::is_exact(reduction.op->builtin, reduction.type->basic());
}

}  // namespace

StepId reduce_halving(Schedule& schedule, Team team, const Data& part, StepId ready) {
  if (Fold(team.size).is_second_of_pair(team.self)) {
    return schedule.send(team, team.self - 1, part.memory(), ready);
  }
  Level levels[32] = {};
  return halve(schedule, team, part, ready, levels);
}

StepId allreduce_doubling(Schedule& schedule, Team team, const Data& part, StepId ready) {
  const Fold fold(team.size);
  const int rank = team.self;
  if (fold.is_second_of_pair(rank)) {
    const StepId sent = schedule.send(team, rank - 1, part.memory(), ready);
    return schedule.receive(team, rank - 1, part.memory(), sent);
  }
  const Data heard = element_scratch(schedule, part);
  if (schedule.failed()) return no_step;
  if (fold.is_first_of_pair(rank)) ready = join_pair(schedule, team, part, heard, ready);
  // Nearest first. A step's reduction waits for its own send, too: the send reads what the
  // reduction overwrites.
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const int other = fold.rank(fold.position(rank) ^ distance);
    const StepId sent = schedule.send(team, other, part.memory(), ready);
    const StepId arrived = schedule.receive(team, other, heard.memory(), ready);
    ready = schedule.reduce(heard.buffer, part.buffer, part.count, other > rank, arrived);
    schedule.depends(ready, sent);
  }
  if (fold.is_first_of_pair(rank)) {
    const StepId done = schedule.join();
    schedule.depends(done, schedule.send(team, rank + 1, part.memory(), ready));
    return done;
  }
  return ready;
}

Schedule* reduce(const Place& place, const Data& in, const Data& out, const Reduction& reduction,
                 int root) {
  if (place.is_inter()) return inter::reduce(place, in, out, reduction, root);
  Schedule* schedule = make_reduction(place, Kind::reduce, in, reduction);
  if (!schedule) return nullptr;
  if (place.choose(Kind::reduce, in.bytes()) == Algorithm::direct) {
    fold_direct(*schedule, place.team(), in, out, root);
  } else {
    reduce_binomial(*schedule, place.team(), in, out, root);
  }
  return schedule;
}

Schedule* allreduce(const Place& place, const Data& in, const Data& out,
                    const Reduction& reduction) {
  if (place.is_inter()) return inter::allreduce(place, in, out, reduction);
  Schedule* schedule = make_reduction(place, Kind::allreduce, in, reduction);
  if (!schedule) return nullptr;
  const Algorithm algorithm = place.choose(Kind::allreduce, in.bytes());
  if (algorithm == Algorithm::direct) {
    fold_direct(*schedule, place.team(), in, out, -1);
    return schedule;
  }
  StepId ready = no_step;
  if (out.buffer != in.buffer) ready = schedule->copy(in.memory(), out.memory());
  if (algorithm == Algorithm::doubling) {
    allreduce_doubling(*schedule, place.team(), out, ready);
  } else if (algorithm == Algorithm::ring && may_reorder(reduction)) {
    allreduce_ring(*schedule, place.team(), out, ready);
  } else {
    allreduce_halving(*schedule, place.team(), out, ready);
  }
  return schedule;
}

}  // namespace headway::collectives
