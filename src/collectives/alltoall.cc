// Alltoall, with blocks of one length, of many, or of many types.
#include "collectives/collectives.h"

namespace headway::collectives {
namespace {

// Everything at once, or (in_rounds) one partner after the other.
void exchange(Schedule& schedule, Team team, const Blocks& in, const Blocks& out, bool in_rounds) {
  const int rank = team.self, size = team.size;
  schedule.copy(in[rank].memory(), out[rank].memory());
  StepId before = no_step;
  for (int step = 1; step < size; ++step) {
    const int from = (rank + size - step) % size, to = (rank + step) % size;
    const StepId received = schedule.receive(team, from, out[from].memory(), before);
    const StepId sent = schedule.send(team, to, in[to].memory(), before);
    if (!in_rounds) continue;
    before = schedule.join();
    schedule.depends(before, received);
    schedule.depends(before, sent);
  }
}

// In place: what goes out is packed away before anything may come in. In rounds, one block is
// away at a time.
void exchange_in_place(Schedule& schedule, Team team, const Blocks& both, bool in_rounds) {
  const int rank = team.self, size = team.size;
  StepId before = no_step;
  // Partners meet: those whose numbers add up to the same sum.
  for (int sum = 0; sum < size; ++sum) {
    const int other = (sum + size - rank) % size;
    if (other == rank) continue;
    const UserMemory memory = both[other].memory();
    char* packed = schedule.scratch(memory.bytes());
    if (!packed) return;
    const UserMemory away(packed, memory.bytes());
    const StepId saved = schedule.copy(memory, away, before);
    const StepId received = schedule.receive(team, other, memory, saved);
    const StepId sent = schedule.send(team, other, away, saved);
    if (!in_rounds) continue;
    before = schedule.join();
    schedule.depends(before, received);
    schedule.depends(before, sent);
  }
}

// log(n) rounds: block i of the packed ones is for the rank i further on; in round k all blocks
// with bit k set move on by 2^k ranks.
void bruck(Schedule& schedule, Team team, const Blocks& in, const Blocks& out) {
  const int rank = team.self, size = team.size;
  const uint64_t block = out[rank].bytes();
  char* packed = schedule.scratch(block, size);
  char* leaving = schedule.scratch(block, size);
  char* coming = schedule.scratch(block, size);
  if (schedule.failed()) return;
  const auto at = [block](char* base, int i) {
    return UserMemory(base + block * uint64_t(i), block);
  };
  StepId ready = schedule.join();
  const Blocks& source = in.in_place() ? out : in;
  for (int i = 0; i < size; ++i) {
    schedule.depends(ready, schedule.copy(source[(rank + i) % size].memory(), at(packed, i)));
  }
  for (int distance = 1; distance < size; distance *= 2) {
    const StepId filled = schedule.join(), emptied = schedule.join();
    int blocks = 0;
    for (int i = distance; i < size; ++i) {
      if (!(i & distance)) continue;
      schedule.depends(filled, schedule.copy(at(packed, i), at(leaving, blocks++), ready));
    }
    const uint64_t bytes = block * uint64_t(blocks);
    const StepId sent =
        schedule.send(team, (rank + distance) % size, UserMemory(leaving, bytes), filled);
    const StepId arrived =
        schedule.receive(team, (rank + size - distance) % size, UserMemory(coming, bytes), filled);
    blocks = 0;
    for (int i = distance; i < size; ++i) {
      if (!(i & distance)) continue;
      schedule.depends(emptied, schedule.copy(at(coming, blocks++), at(packed, i), arrived));
    }
    schedule.depends(emptied, sent);
    ready = emptied;
    if (distance > size / 2) break;
  }
  for (int i = 0; i < size; ++i) {
    schedule.copy(at(packed, i), out[(rank + size - i) % size].memory(), ready);
  }
}

void build(Schedule& schedule, Team team, const Blocks& in, const Blocks& out,
           Algorithm algorithm) {
  in.keep(schedule, team.size);
  out.keep(schedule, team.size);
  if (algorithm == Algorithm::bruck) {
    bruck(schedule, team, in, out);
  } else if (in.in_place()) {
    exchange_in_place(schedule, team, out, algorithm == Algorithm::pairwise);
  } else {
    exchange(schedule, team, in, out, algorithm == Algorithm::pairwise);
  }
}

}  // namespace

Schedule* alltoall(const Place& place, const Blocks& in, const Blocks& out) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::alltoall);
  if (!schedule) return nullptr;
  build(*schedule, place.team(), in, out, place.choose(Kind::alltoall, out[0].bytes()));
  return schedule;
}

Schedule* alltoallv(const Place& place, const Blocks& in, const Blocks& out, Kind kind) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, kind);
  if (!schedule) return nullptr;
  build(*schedule, place.team(), in, out, place.choose(kind, 0));
  return schedule;
}

}  // namespace headway::collectives
