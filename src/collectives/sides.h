// Sides: what one side of an inter-communicator does with what has come over the bridge, as parts
// of schedules (phases.h). Thread: an application thread that builds one. Owns nothing. Invariant:
// steps that become ready at once are launched in no order that may be counted on, so the sends
// between two ranks of one side, of one phase or of several, and their receives are put into one.
#pragma once
#include "collectives/collectives.h"
#include "collectives/tree.h"

namespace headway::collectives::inter {

inline constexpr int most_partners = 32;  // that a rank talks with at once

// Everything straight to whom it is for: where ranks share cores, as each round costs all of them a
// turn (algorithms.cc has the limits, in bytes, which were measured on one group), or if it is
// forced. Both sides come to the same answer.
inline bool goes_straight(const Place& place, Kind kind, uint64_t bytes = 0,
                          uint64_t most = UINT64_MAX) {
  const Algorithm wanted = place.forced.of[size_t(kind)];
  if (wanted != Algorithm::automatic) return wanted == Algorithm::direct;
  return place.team().size <= most_partners && place.others().size <= most_partners &&
         bytes <= most && sharing_of(place.engine, place.comm) == Sharing::crowded;
}

// Turns of sends or of receives: each is launched when it is ready and those before it are
// launched; it need not wait until they are over.
class InOrder {
 public:
  // The first one is launched behind what `after` comes after.
  explicit InOrder(Schedule& schedule, StepId after = no_step)
      : schedule_(schedule), last_(after) {}
  // What the next one waits for.
  StepId next(StepId ready) {
    const StepId turn = schedule_.join();
    schedule_.depends(turn, ready);
    schedule_.depends(turn, last_);
    last_ = turn;
    return turn;
  }
  // Comes after all of them are launched.
  StepId passed() { return next(no_step); }

 private:
  Schedule& schedule_;
  StepId last_;
};

// From the first ranks of a team, `lanes` of them, to all: down a tree from each to those whose
// numbers are the same modulo `lanes`. `ready`: when it is there at the first ones. The messages
// come behind those that `after` comes after. Returns the step after which it is there.
inline StepId fan_out(Schedule& schedule, Team team, int lanes, const UserMemory& memory,
                      StepId ready, StepId after = no_step) {
  const int lane = team.self % lanes;
  Team line;
  line.size = (team.size - lane + lanes - 1) / lanes;
  line.self = team.self / lanes;
  const Binomial tree(line, 0);
  const auto rank_of = [&](int number) { return lane + number * lanes; };
  const StepId there =
      tree.is_root() ? ready : schedule.receive(team, rank_of(tree.parent()), memory, after);
  if (tree.subtree() == 1) return there;
  const StepId turn = InOrder(schedule, after).next(there);
  for (int distance = tree.reach / 2; distance > 0; distance /= 2) {
    if (tree.has_child(distance)) schedule.send(team, rank_of(tree.child(distance)), memory, turn);
  }
  return there;
}

// All pieces to all ranks of a team, round a ring, on which piece i starts at rank i % size.
// memory(i): where it lies. come(i): the step that brings it to where it starts. The sends take
// their turns, and the receives come behind those that `after` comes after. `all`, if it is a step,
// comes after everything is there.
template <class Memory, class Come>
void spread(Schedule& schedule, Team team, int pieces, Memory&& memory, Come&& come, InOrder& turns,
            StepId after = no_step, StepId all = no_step) {
  const int next = (team.self + 1) % team.size;
  const int before = (team.self + team.size - 1) % team.size;
  InOrder arrivals(schedule, after);
  for (int i = 0; i < pieces; ++i) {
    const int first = i % team.size;
    StepId there = no_step;
    if (first == team.self) {
      there = come(i);
    } else {
      // Without a step before them they are launched at once, in this order.
      const StepId turn = after == no_step ? no_step : arrivals.next(no_step);
      there = schedule.receive(team, before, memory(i), turn);
    }
    schedule.depends(all, there);
    if (next != first) schedule.send(team, next, memory(i), turns.next(there));
  }
}

}  // namespace headway::collectives::inter
