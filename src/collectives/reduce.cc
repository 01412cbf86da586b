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

Partial::Partial(Schedule& schedule, Team team, const Data& in, const Data& into)
    : schedule_(schedule), team_(team), into_(into), now_(in) {
  const bool in_place = into.type && into.buffer == in.buffer;
  if (schedule.reduction.kernel && !in_place) return;
  settle();
}

void Partial::settle() {
  if (with_result_) return;
  with_result_ = true;
  if (make(into_) && into_.buffer != now_.buffer) {
    ready_ = schedule_.copy(now_.memory(), into_.memory(), ready());
  }
  now_ = into_;
}

StepId Partial::ready() {
  if (beside_ == no_step) return ready_;
  const StepId both = schedule_.join();
  schedule_.depends(both, ready_);
  schedule_.depends(both, beside_);
  beside_ = no_step;
  return ready_ = both;
}

bool Partial::make(Data& data) const {
  if (!data.type) data = element_scratch(schedule_, now_);
  return !schedule_.failed();
}

StepId Partial::take(int rank, uint64_t low, uint64_t high, StepId sent) {
  const bool above = rank > team_.self;
  const uint64_t count = high - low;
  if (!make(with_result_ ? heard_ : into_)) return no_step;
  const Data theirs = (with_result_ ? heard_ : into_).part(low, count);
  const Data ours = now_.part(low, count);
  const StepId arrived = schedule_.receive(team_, rank, theirs.memory(), ready());
  if (with_result_) {
    ready_ = schedule_.reduce(theirs.buffer, ours.buffer, count, above, arrived);
  } else {
    ready_ = schedule_.reduce(ours.buffer, theirs.buffer, count, !above, arrived);
  }
  schedule_.depends(ready_, sent);
  now_ = into_;
  with_result_ = true;
  return arrived;
}

void Partial::adopt(int rank, uint64_t low, uint64_t high, StepId sent, StepId taken) {
  if (!make(into_)) return;
  const Data lands = into_.part(low, high - low);
  const StepId arrived = schedule_.receive(team_, rank, lands.memory(), taken);
  if (with_result_) schedule_.depends(arrived, sent);
  // Without anything taken from that rank, what comes is made of what was given to it.
  beside_ = taken == no_step ? no_step : ready();
  ready_ = arrived;
  now_ = into_;
  with_result_ = true;
}

StepId reduce_binomial(Schedule& schedule, Team team, const Data& in, const Data& out, int root) {
  const Fold fold(team.size);
  const int rank = team.self;
  const bool is_root = rank == root;
  const uint64_t count = in.count;
  // The partial result: at the root in its buffer, elsewhere in scratch memory.
  Partial partial(schedule, team, in, is_root ? out : Data{});

  // If the second of a pair is the root, it gets the result back from the first.
  const int root_first = fold.is_second_of_pair(root) ? root - 1 : root;
  if (fold.is_second_of_pair(rank)) {
    const StepId sent = partial.give(rank - 1, 0, count);
    if (!is_root) return sent;
    partial.adopt(rank - 1, 0, count, sent);
    return partial.ready();
  }
  if (fold.is_first_of_pair(rank)) partial.take(rank + 1, 0, count);
  const int self = fold.position(rank), goal = fold.position(root_first);
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const int other = fold.rank(self ^ distance);
    if ((self ^ goal) & distance) return partial.give(other, 0, count);
    partial.take(other, 0, count);
  }
  if (root != root_first) return partial.give(root, 0, count);
  partial.settle();
  return partial.ready();
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
  StepId sent;         // the half that was given away, if the result is to lie there
  StepId taken;        // the other half's arrival
};

// Each step halves the range that a position folds on, until it is what halved() says. Every
// element sees the fixed tree.
void halve(Team team, Partial& partial, Level (&levels)[32]) {
  const Fold fold(team.size);
  uint64_t low = 0, high = partial.all().count;
  if (fold.is_first_of_pair(team.self)) partial.take(team.self + 1, low, high);
  int level = 0;
  const int self = fold.position(team.self);
  for (int distance = 1; distance < fold.power; distance *= 2, ++level) {
    const int other = fold.rank(self ^ distance);
    const uint64_t middle = low + (high - low) / 2;
    const bool keeps_upper = self & distance, lies_there = partial.is_with_result();
    const StepId sent =
        keeps_upper ? partial.give(other, low, middle) : partial.give(other, middle, high);
    Level& wide = levels[level] = {low, high, lies_there ? sent : no_step, no_step};
    (keeps_upper ? low : high) = middle;
    wide.taken = partial.take(other, low, high);
  }
}

// Halving; then doubling puts the pieces together again, farthest first.
void allreduce_halving(Team team, Partial& partial) {
  const Fold fold(team.size);
  const int rank = team.self;
  const uint64_t count = partial.all().count;
  if (fold.is_second_of_pair(rank)) {
    partial.adopt(rank - 1, 0, count, partial.give(rank - 1, 0, count));
    return;
  }
  Level levels[32] = {};
  halve(team, partial, levels);
  const int self = fold.position(rank);
  auto [low, high] = halved(fold, self, count);
  int level = 0;
  while (1 << level < fold.power) ++level;
  for (int distance = fold.power / 2; distance > 0; distance /= 2) {
    const Level& wide = levels[--level];
    const int other = fold.rank(self ^ distance);
    partial.give(other, low, high);
    const bool has_upper = self & distance;
    partial.adopt(other, has_upper ? wide.low : high, has_upper ? low : wide.high, wide.sent,
                  wide.taken);
    low = wide.low;
    high = wide.high;
  }
  if (fold.is_first_of_pair(rank)) partial.give(rank + 1, low, high);
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

StepId reduce_halving(Team team, Partial& partial) {
  if (Fold(team.size).is_second_of_pair(team.self)) {
    return partial.give(team.self - 1, 0, partial.all().count);
  }
  Level levels[32] = {};
  halve(team, partial, levels);
  return partial.ready();
}

namespace {

// Halving; then each sends the root what it has folded.
void reduce_by_pieces(Schedule& schedule, Team team, const Data& in, const Data& out, int root) {
  const Fold fold(team.size);
  const int rank = team.self, self = fold.position(rank);
  const bool is_root = rank == root;
  const uint64_t count = in.count;
  Partial partial(schedule, team, in, is_root ? out : Data{});
  Level levels[32] = {};
  StepId given = no_step;  // the second of a pair gives all away at first
  if (self >= 0) {
    halve(team, partial, levels);
  } else {
    const StepId sent = partial.give(rank - 1, 0, count);
    if (partial.is_with_result()) given = sent;
  }
  if (!is_root) {
    if (self < 0) return;
    const Range own = halved(fold, self, count);
    partial.give(root, own.low, own.high);
    return;
  }
  if (self >= 0) partial.settle();
  if (schedule.failed()) return;
  for (int position = 0; position < fold.power; ++position) {
    if (position == self) continue;
    // It is a part of the half that was given away where the two positions part, or of all.
    int level = 0;
    while (self >= 0 && !((position ^ self) >> level & 1)) ++level;
    // This receive is posted behind that of a half which comes from the same rank: it waits for a
    // send that was launched with that one, or nothing waits, and it is made later.
    const Range range = halved(fold, position, count);
    schedule.receive(team, fold.rank(position),
                     out.part(range.low, range.high - range.low).memory(),
                     self >= 0 ? levels[level].sent : given);
  }
}

}  // namespace

StepId allreduce_doubling(Schedule& schedule, Team team, Partial& partial) {
  const Fold fold(team.size);
  const int rank = team.self;
  const uint64_t count = partial.all().count;
  if (fold.is_second_of_pair(rank)) {
    partial.adopt(rank - 1, 0, count, partial.give(rank - 1, 0, count));
    return partial.ready();
  }
  if (fold.is_first_of_pair(rank)) partial.take(rank + 1, 0, count);
  // Nearest first. A step's reduction waits for its own send, too: the send reads what the
  // reduction overwrites, or what the caller will.
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const int other = fold.rank(fold.position(rank) ^ distance);
    const StepId sent = partial.give(other, 0, count);
    partial.take(other, 0, count, sent);
  }
  if (!fold.is_first_of_pair(rank)) return partial.ready();
  const StepId done = schedule.join();
  schedule.depends(done, partial.give(rank + 1, 0, count));
  return done;
}

Schedule* reduce(const Place& place, const Data& in, const Data& out, const Reduction& reduction,
                 int root) {
  if (place.is_inter()) return inter::reduce(place, in, out, reduction, root);
  Schedule* schedule = make_reduction(place, Kind::reduce, in, reduction);
  if (!schedule) return nullptr;
  switch (place.choose(Kind::reduce, in.bytes())) {
    case Algorithm::direct: fold_direct(*schedule, place.team(), in, out, root); break;
    case Algorithm::halving: reduce_by_pieces(*schedule, place.team(), in, out, root); break;
    default: reduce_binomial(*schedule, place.team(), in, out, root);
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
  if (algorithm == Algorithm::ring && may_reorder(reduction)) {
    StepId ready = no_step;
    if (out.buffer != in.buffer) ready = schedule->copy(in.memory(), out.memory());
    allreduce_ring(*schedule, place.team(), out, ready);
    return schedule;
  }
  Partial partial(*schedule, place.team(), in, out);
  if (algorithm == Algorithm::doubling) {
    allreduce_doubling(*schedule, place.team(), partial);
  } else {
    allreduce_halving(place.team(), partial);
  }
  partial.settle();
  return schedule;
}

}  // namespace headway::collectives
