#include "causes.h"

#include <algorithm>
#include <utility>

#include "sentences.h"

namespace headway::launcher {
namespace {

// Looks of a waiting rank, all in vain, of which one surely began and ended between ours.
constexpr uint64_t enough_looks = 3;

}  // namespace

Judgement::Judgement(const std::vector<Seen>& before, std::vector<Seen> after, double seconds)
    : ranks_(std::move(after)), seconds_(seconds) {
  const Spot nothing;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const Spot& then = i < before.size() ? before[i].spot : nothing;
    gaits_.push_back(gait_of(then, spot(i)));
    asked_.push_back(spot(i).polls - then.polls);
  }
  find_dead();
  places_.reserve(size());
  for (size_t i = 0; i < size(); ++i) places_.push_back(describe(i));
}

bool Judgement::has(Gait gait) const {
  return std::find(gaits_.begin(), gaits_.end(), gait) != gaits_.end();
}

Gait Judgement::gait_of(const Spot& before, const Spot& after) const {
  if (after.kind == Spot::Kind::ended) return Gait::ended;
  if (after.state == 'T' || after.state == 't') return Gait::stopped;
  switch (after.kind) {
    case Spot::Kind::unknown: return Gait::unknown;
    case Spot::Kind::before: return Gait::before;
    case Spot::Kind::left: return Gait::left;
    case Spot::Kind::ended:
    case Spot::Kind::computing:
    case Spot::Kind::in_call: break;
  }
  if (after.abroad) return Gait::unsure;  // nobody here sees whether another job gets on
  if (before.kind != Spot::Kind::computing && before.kind != Spot::Kind::in_call) {
    return Gait::unsure;
  }
  if (before.unsteady || after.unsteady || before.signs != after.signs) return Gait::moves;
  if (before.waits != after.waits || before.moves != after.moves || !before.same_place(after) ||
      before.unmatched.serial != after.unmatched.serial) {
    return Gait::moves;
  }
  if (after.barrier != 0) return after.barrier == before.barrier ? Gait::stands : Gait::moves;
  if (before.polls != after.polls) return after.many_threads ? Gait::unsure : Gait::polls;
  // It waits for a message, whatever it does meanwhile: that is as good as a wait in MPI.
  const bool is_unmatched = after.unmatched.serial != 0 && after.one_thread;
  if (after.kind == Spot::Kind::computing && is_unmatched) {
    return after.listens || is_shown_to_wait(before, after) ? Gait::stands : Gait::unsure;
  }
  if (after.kind == Spot::Kind::computing) {
    // Who computes on a full machine may have had no time.
    const bool sleeps = before.state == 'S' && after.state == 'S';
    return sleeps && after.cpu_ticks == before.cpu_ticks ? Gait::sleeps : Gait::computes;
  }
  if (after.many_threads || after.signs.empty()) return Gait::unsure;
  return is_shown_to_wait(before, after) ? Gait::stands : Gait::unsure;
}

bool Judgement::is_shown_to_wait(const Spot& before, const Spot& after) const {
  return after.asleep || after.vain - before.vain >= enough_looks;
}

// What has left a rank by TCP and has not come to another may wake that one yet, and so may what
// waits for its connection. Of shared memory nothing is on its way: whoever looked in vain has seen
// all of it.
bool Judgement::is_in_flight() const {
  uint64_t out = 0, in = 0;
  bool all_tell = true;
  for (size_t i = 0; i < size(); ++i) {
    if (spot(i).connecting) return true;
    all_tell &= gaits_[i] != Gait::ended && gaits_[i] != Gait::left;
    out += spot(i).frames_out;
    in += spot(i).frames_in;
  }
  return all_tell && out != in;
}

// What it cannot go on without, as far as is known.
void Judgement::add_needs(size_t i, WaitGraph& graph) const {
  const Spot& at = spot(i);
  const auto needs = [&](int other) {
    if (other >= 0 && size_t(other) < size()) {
      graph.needs(i, size_t(other));
    } else {
      graph.needs_anybody(i);
    }
  };
  if (at.needs.known) {
    for (const int other : at.needs.all.members) needs(other);
    for (const RankSet& one : at.needs.any)
      graph.needs_one_of(i, one.number, -1, [&one] { return one.members; });
    return;
  }
  if (at.unmatched.serial != 0 && at.one_thread) needs(at.unmatched.awaited);
  if (at.kind == Spot::Kind::computing) return;
  if (is_point_to_point(at) && at.awaited >= 0) {
    needs(at.awaited);
    return;
  }
  const SeenComm* comm = is_collective(at) || receives(at) ? comm_of(i, at.context) : nullptr;
  if (comm && receives(at)) {
    graph.needs_one_of(i, at.context, comm->side(), [comm] { return comm->senders(); });
  } else if (comm) {
    graph.needs_one_of(i, at.context, -1, [comm] { return comm->members; });
  } else {
    graph.needs_anybody(i);
  }
}

// A rank that waits goes on only if those do that it may wait for. Those from which no way leads to
// a rank that does not wait can never go on.
void Judgement::find_dead() {
  std::vector<char> live(size(), 0);
  in_flight_ = is_in_flight();
  WaitGraph graph(size());
  for (size_t i = 0; i < size(); ++i) {
    const bool stands = gaits_[i] == Gait::stands;
    const bool may_go_on = in_flight_ || spot(i).needs.open;
    live[i] = stands ? may_go_on : gaits_[i] != Gait::ended && !spot(i).done;
    if (stands && !may_go_on) add_needs(i, graph);
  }
  graph.spread(live);
  dead_.assign(size(), 0);
  for (size_t i = 0; i < size(); ++i) dead_[i] = gaits_[i] == Gait::stands && !live[i];
  put_unmatched_first();
}

// Of a rank whose released receive has no message that one is told, not where it is meanwhile: it
// is what it waits for. In a call it is so only where the call alone would not prove it.
void Judgement::put_unmatched_first() {
  const auto is_lost = [&](int rank) {
    const auto i = size_t(rank);
    return rank >= 0 && i < size() && (dead_[i] || gaits_[i] == Gait::ended);
  };
  for (size_t i = 0; i < size(); ++i) {
    Spot& at = ranks_[i].spot;
    const SeenUnmatched& waits = at.unmatched;
    if (waits.serial == 0 || !at.one_thread) continue;
    if (at.kind == Spot::Kind::in_call) {
      const bool call_is_enough = is_point_to_point(at) && is_lost(at.awaited);
      if (!dead_[i] || !is_lost(waits.awaited) || call_is_enough) continue;
    } else if (at.kind != Spot::Kind::computing) {
      continue;
    }
    at.kind = Spot::Kind::in_call;
    at.is_released = true;
    at.call = waits.call;
    at.peer = waits.peer;
    at.tag = waits.tag;
    at.awaited = waits.awaited;
    at.context = waits.context;
    at.site = waits.site;
  }
}

std::vector<int> Judgement::dead() const {
  std::vector<int> found;
  for (size_t i = 0; i < size(); ++i) {
    if (dead_[i]) found.push_back(ranks_[i].rank);
  }
  return found;
}

// All wait, and what is on its way to one of them may be what it waits for.
bool Judgement::is_on_its_way() const {
  return in_flight_ &&
         std::all_of(gaits_.begin(), gaits_.end(), [](Gait gait) { return gait == Gait::stands; });
}

std::vector<int> Judgement::ranks_with(Gait gait) const {
  std::vector<int> found;
  for (size_t i = 0; i < size(); ++i) {
    if (gaits_[i] == gait) found.push_back(ranks_[i].rank);
  }
  return found;
}

const SeenComm* Judgement::comm_of(size_t i, uint64_t context) const {
  for (const SeenComm& comm : spot(i).comms) {
    if (comm.context == context) return &comm;
  }
  return nullptr;
}

bool Judgement::is_stuck() const {
  if (std::find(dead_.begin(), dead_.end(), 1) != dead_.end()) return true;
  // A job that starts is no job that hangs: a rank may take its time before MPI_Init.
  if (has(Gait::moves) || has(Gait::unsure) || has(Gait::before)) return false;
  if (has(Gait::unknown) || is_on_its_way()) return false;
  return has(Gait::stopped) || has(Gait::stands);
}

bool may_hang(const std::vector<Seen>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const Seen& seen) {
    return seen.spot.kind == Spot::Kind::in_call || seen.spot.unmatched.serial != 0 ||
           seen.spot.state == 'T' || seen.spot.state == 't';
  });
}

}  // namespace headway::launcher
