// Collectives of two sides that reduce. Each side folds its own vectors along the fixed tree; what
// crosses the bridge is the fold.
#include "collectives/inter.h"
#include "collectives/reduction.h"
#include "collectives/sides.h"

namespace headway::collectives::inter {
namespace {

constexpr uint64_t most_whole = 16 << 10;   // bytes of a vector that is folded and crosses as one
constexpr uint64_t piece_bytes = 64 << 10;  // of one that crosses in pieces, about
constexpr uint64_t most_parts = 64;         // of what one rank has folded
// Bytes of a vector that goes straight where ranks share cores: to a root, to all.
constexpr uint64_t most_reduced = 64 << 10, most_allreduced = 512;

// How a fold crosses the bridge: as one vector, from the first rank of the side that folds; or in
// pieces, from each rank what it has folded, in one part or in several.
class Cut {
 public:
  Cut(int ranks, const Data& vector, uint64_t parts)
      : fold_(ranks), count_(vector.count), whole_(vector.bytes() <= most_whole) {
    const uint64_t wanted = vector.bytes() / uint64_t(fold_.power) / piece_bytes;
    parts_ = wanted < 1 ? 1 : wanted > parts ? parts : wanted;
  }
  bool is_whole() const { return whole_; }
  int pieces() const { return whole_ ? 1 : fold_.power * int(parts_); }
  // That has it.
  int rank_of(int piece) const { return whole_ ? 0 : fold_.rank(piece % fold_.power); }
  Range range(int piece) const {
    if (whole_) return {0, count_};
    const Range half = halved(fold_, piece % fold_.power, count_);
    const uint64_t part = uint64_t(piece / fold_.power), n = half.high - half.low;
    return {half.low + n * part / parts_, half.low + n * (part + 1) / parts_};
  }
  Data of(const Data& vector, int piece) const {
    const Range found = range(piece);
    return vector.part(found.low, found.high - found.low);
  }

 private:
  Fold fold_;
  uint64_t count_;
  uint64_t parts_ = 1;
  bool whole_;
};

// A vector in which the fold lies, as far as this rank has it, and the step after which it does.
struct Folded {
  Data vector;
  StepId ready = no_step;
};

Folded fold_own(Schedule& schedule, Team own, const Data& in, const Cut& cut) {
  if (own.size == 1) return {in, no_step};
  Data vector;
  if (!cut.is_whole() || own.self == 0) vector = element_scratch(schedule, in);
  if (schedule.failed()) return {};
  if (cut.is_whole()) return {vector, reduce_binomial(schedule, own, in, vector, 0)};
  Partial partial(schedule, own, in, vector);
  return {vector, reduce_halving(own, partial)};
}

// Those pieces that this rank has, each to target(piece) of the other side.
template <class Target>
void send_pieces(Schedule& schedule, const Place& place, const Cut& cut, const Folded& folded,
                 Target&& target) {
  InOrder turns(schedule);
  for (int piece = 0; piece < cut.pieces(); ++piece) {
    if (cut.rank_of(piece) != place.team().self) continue;
    schedule.send(place.others(), target(piece), cut.of(folded.vector, piece).memory(),
                  turns.next(folded.ready));
  }
}

// The vectors of all ranks beyond, folded by the one that wants the result.
void hear_all(Schedule& schedule, const Place& place, const Data& out) {
  base::Vec<Operand> operands;
  for (int rank = 0; rank < place.others().size; ++rank) {
    const Data heard = element_scratch(schedule, out);
    if (schedule.failed()) return;
    const StepId came = schedule.receive(place.others(), rank, heard.memory());
    if (!operands.push({heard.buffer, came})) {
      schedule.fail();
      return;
    }
  }
  const StepId folded = fold_operands(schedule, operands, out.count);
  const Data result{operands.back().buffer, out.count, out.type};
  schedule.copy(result.memory(), out.memory(), folded);
}

// A short vector: every rank folds, and hears from the one of the other side that has its number.
void allreduce_whole(Schedule& schedule, const Place& place, const Data& in, const Data& out) {
  const Team own = place.team(), others = place.others();
  const int lanes = own.size < others.size ? own.size : others.size;
  Data folded = in;
  StepId done = no_step;
  if (own.size > 1) {
    Partial partial(schedule, own, in, {});
    done = allreduce_doubling(schedule, own, partial);
    if (schedule.failed()) return;
    folded = partial.all();
  }
  StepId ready = no_step;
  if (own.self < lanes) {
    schedule.send(others, own.self, folded.memory(), done);
    ready = schedule.receive(others, own.self, out.memory());
  }
  fan_out(schedule, own, lanes, out.memory(), ready, done);
}

// What both have of the elements of a vector; empty: low == high.
Range common(const Range& a, uint64_t low, uint64_t high) {
  const Range both{a.low > low ? a.low : low, a.high < high ? a.high : high};
  return both.low < both.high ? both : Range{low, low};
}

}  // namespace

Schedule* reduce(const Place& place, const Data& in, const Data& out, const Reduction& reduction,
                 int root) {
  if (root == beside_root) return Schedule::make(place.engine, place.comm, Kind::reduce);
  const Team own = place.team(), others = place.others();
  const bool is_root = root == root_itself;
  const Data& vector = is_root ? out : in;
  Schedule* schedule = make_reduction(place, Kind::reduce, vector, reduction);
  if (!schedule) return nullptr;
  if (goes_straight(place, Kind::reduce, vector.bytes(), most_reduced)) {
    if (is_root) {
      hear_all(*schedule, place, out);
    } else {
      schedule->send(others, root, in.memory());
    }
    return schedule;
  }
  const Cut cut(is_root ? others.size : own.size, vector, 1);
  if (is_root) {
    for (int piece = 0; piece < cut.pieces(); ++piece) {
      schedule->receive(others, cut.rank_of(piece), cut.of(out, piece).memory());
    }
    return schedule;
  }
  const Folded folded = fold_own(*schedule, own, in, cut);
  if (!schedule->failed()) send_pieces(*schedule, place, cut, folded, [&](int) { return root; });
  return schedule;
}

Schedule* allreduce(const Place& place, const Data& in, const Data& out,
                    const Reduction& reduction) {
  Schedule* schedule = make_reduction(place, Kind::allreduce, in, reduction);
  if (!schedule) return nullptr;
  if (goes_straight(place, Kind::allreduce, in.bytes(), most_allreduced)) {
    for (int step = 0; step < place.others().size; ++step) {
      const int rank = (place.team().self + step) % place.others().size;
      schedule->send(place.others(), rank, in.memory());
    }
    hear_all(*schedule, place, out);
    return schedule;
  }
  const Team own = place.team(), others = place.others();
  const Cut mine(own.size, in, most_parts), theirs(others.size, out, most_parts);
  if (mine.is_whole()) {
    allreduce_whole(*schedule, place, in, out);
    return schedule;
  }
  const Folded folded = fold_own(*schedule, own, in, mine);
  if (schedule->failed()) return schedule;
  send_pieces(*schedule, place, mine, folded, [&](int piece) { return piece % others.size; });
  InOrder turns(*schedule, folded.ready);
  const auto memory = [&](int piece) { return theirs.of(out, piece).memory(); };
  const auto come = [&](int piece) {
    return schedule->receive(others, theirs.rank_of(piece), memory(piece));
  };
  spread(*schedule, own, theirs.pieces(), memory, come, turns, folded.ready);
  return schedule;
}

// The other side does not know how this one deals the result out: a piece goes to one rank, which
// passes on what is for others.
Schedule* reduce_scatter(const Place& place, Kind kind, const Data& in, void* out,
                         const base::Vec<uint64_t>& starts, const Reduction& reduction) {
  Schedule* schedule = make_reduction(place, kind, in, reduction);
  if (!schedule) return nullptr;
  const Team own = place.team(), others = place.others();
  const Cut mine(own.size, in, 1), theirs(others.size, in, 1);
  const Folded folded = fold_own(*schedule, own, in, mine);
  if (schedule->failed()) return schedule;
  send_pieces(*schedule, place, mine, folded, [&](int piece) { return piece % others.size; });
  const auto part_of = [&](const Range& piece, int rank) {
    return common(piece, starts[size_t(rank)], starts[size_t(rank) + 1]);
  };
  const uint64_t first = starts[size_t(own.self)];
  const Data result{out, starts[size_t(own.self) + 1] - first, in.type};
  InOrder turns(*schedule, folded.ready), arrivals(*schedule, folded.ready);
  for (int i = 0; i < theirs.pieces(); ++i) {
    const Range piece = theirs.range(i);
    const int owner = i % own.size;
    const Range kept = part_of(piece, own.self);
    const uint64_t kept_count = kept.high - kept.low;
    if (owner != own.self) {
      if (kept_count == 0) continue;
      schedule->receive(own, owner, result.part(kept.low - first, kept_count).memory(),
                        arrivals.next(no_step));
      continue;
    }
    const Data heard = element_scratch(*schedule, {nullptr, piece.high - piece.low, in.type});
    if (schedule->failed()) return schedule;
    const StepId came = schedule->receive(others, theirs.rank_of(i), heard.memory());
    for (int rank = 0; rank < own.size; ++rank) {
      const Range given = part_of(piece, rank);
      const uint64_t count = given.high - given.low;
      if (count == 0) continue;
      const Data part = heard.part(given.low - piece.low, count);
      if (rank == own.self) {
        schedule->copy(part.memory(), result.part(kept.low - first, count).memory(), came);
      } else {
        schedule->send(own, rank, part.memory(), turns.next(came));
      }
    }
  }
  return schedule;
}

}  // namespace headway::collectives::inter
