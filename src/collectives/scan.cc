// Scan and exscan. The association is fixed: in round k (distance 1, 2, 4 ...) every rank puts what
// the rank `distance` below has so far in front of what it has itself. What rank r gets depends on
// r alone, and exscan at rank r gives the bits that scan gives at rank r - 1.
#include "collectives/reduction.h"

namespace headway::collectives {
namespace {

// Ranks first .. size - 1 scan what they have in `part`.
void doubling(Schedule& schedule, Team team, int first, const Data& part, StepId ready) {
  const Data heard = element_scratch(schedule, part);
  if (schedule.failed()) return;
  const int rank = team.self;
  for (int distance = 1; distance < team.size - first; distance *= 2) {
    StepId sent = no_step;
    if (rank + distance < team.size)
      sent = schedule.send(team, rank + distance, part.memory(), ready);
    if (rank - distance < first) continue;
    const StepId arrived = schedule.receive(team, rank - distance, heard.memory(), ready);
    ready = schedule.reduce(heard.buffer, part.buffer, part.count, false, arrived);
    schedule.depends(ready, sent);
  }
}

// Everyone's elements to all higher ranks, which do all rounds by themselves. `last`: the highest
// rank whose elements count here.
void direct(Schedule& schedule, Team team, const Data& in, const Data& out, int last) {
  const int rank = team.self;
  StepId before = schedule.join();  // sends done, and then one step of the rounds after the other
  for (int to = rank + 1; to < team.size; ++to) {
    schedule.depends(before, schedule.send(team, to, in.memory()));
  }
  if (last < 0) return;
  base::Vec<Data> parts;
  for (int from = 0; from <= last; ++from) {
    const Data part = element_scratch(schedule, in);
    if (schedule.failed() || !parts.push(part)) {
      schedule.fail();
      return;
    }
    const StepId arrived = from == rank ? schedule.copy(in.memory(), part.memory())
                                        : schedule.receive(team, from, part.memory());
    schedule.depends(before, arrived);
  }
  for (int distance = 1; distance <= last; distance *= 2) {
    for (int upper = last; upper >= distance; --upper) {
      before = schedule.reduce(parts[size_t(upper - distance)].buffer, parts[size_t(upper)].buffer,
                               in.count, false, before);
    }
  }
  schedule.copy(parts[size_t(last)].memory(), out.memory(), before);
}

}  // namespace

Schedule* scan(const Place& place, const Data& in, const Data& out, const Reduction& reduction) {
  Schedule* schedule = make_reduction(place, Kind::scan, in, reduction);
  if (!schedule) return nullptr;
  if (place.choose(Kind::scan, in.bytes()) == Algorithm::direct) {
    direct(*schedule, place.team(), in, out, place.team().self);
    return schedule;
  }
  StepId ready = no_step;
  if (out.buffer != in.buffer) ready = schedule->copy(in.memory(), out.memory());
  doubling(*schedule, place.team(), 0, out, ready);
  return schedule;
}

Schedule* exscan(const Place& place, const Data& in, const Data& out, const Reduction& reduction) {
  Schedule* schedule = make_reduction(place, Kind::exscan, in, reduction);
  if (!schedule) return nullptr;
  const Team team = place.team();
  const int rank = team.self;
  if (place.choose(Kind::exscan, in.bytes()) == Algorithm::direct) {
    direct(*schedule, team, in, out, rank - 1);
    return schedule;
  }
  // Everyone takes over the elements of the rank below; then ranks from 1 on scan them.
  StepId sent = no_step;
  if (rank + 1 < team.size) sent = schedule->send(team, rank + 1, in.memory());
  if (rank == 0) return schedule;
  const StepId arrived = schedule->receive(team, rank - 1, out.memory(), sent);
  doubling(*schedule, team, 1, out, arrived);
  return schedule;
}

}  // namespace headway::collectives
