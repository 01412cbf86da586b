// Allgather, with blocks of one length or of many.
#include "collectives/inter.h"

namespace headway::collectives {
namespace {

// Everyone's own block in its place, and to everyone. From and into the user's buffers: what is
// ready of them may travel before the call.
void direct(Schedule& schedule, Team team, const Data& in, const Blocks& out) {
  const int rank = team.self, size = team.size;
  const Data own = in.type ? in : out[rank];
  if (in.type) schedule.copy(in.memory(), out[rank].memory());
  for (int step = 1; step < size; ++step) {
    const int from = (rank + size - step) % size;
    schedule.receive(team, from, out[from].memory());
    schedule.send(team, (rank + step) % size, own.memory());
  }
}

// Each round passes on to the next rank what the last one brought.
void ring(Schedule& schedule, Team team, const Data& in, const Blocks& out) {
  const int rank = team.self, size = team.size;
  StepId ready = no_step;
  if (in.type) ready = schedule.copy(in.memory(), out[rank].memory());
  for (int round = 0; round + 1 < size; ++round) {
    const int gives = (rank + size - round) % size;
    const int takes = (gives + size - 1) % size;
    schedule.send(team, (rank + 1) % size, out[gives].memory(), ready);
    ready = schedule.receive(team, (rank + size - 1) % size, out[takes].memory(), ready);
  }
}

// Packed blocks, the own one first; each round doubles them.
void bruck(Schedule& schedule, Team team, const Data& in, const Blocks& out) {
  const int rank = team.self, size = team.size;
  const Data own = in.type ? in : out[rank];
  const uint64_t block = out[rank].bytes();
  char* packed = schedule.scratch(block, size);
  if (!packed) return;
  StepId ready = schedule.copy(own.memory(), UserMemory(packed, block));
  for (int distance = 1; distance < size; distance *= 2) {
    const uint64_t blocks = uint64_t(size - distance < distance ? size - distance : distance);
    schedule.send(team, (rank + size - distance) % size, UserMemory(packed, block * blocks), ready);
    ready =
        schedule.receive(team, (rank + distance) % size,
                         UserMemory(packed + block * uint64_t(distance), block * blocks), ready);
    if (distance > size / 2) break;
  }
  const int first = size - rank;
  schedule.copy(UserMemory(packed, block * uint64_t(first)), out.range(rank, first).memory(),
                ready);
  schedule.copy(UserMemory(packed + block * uint64_t(first), block * uint64_t(rank)),
                out.range(0, rank).memory(), ready);
}

Schedule* build(const Place& place, Kind kind, uint64_t bytes, const Data& in, const Blocks& out) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, kind);
  if (!schedule) return nullptr;
  if (in.type) schedule->keep(in.type);
  out.keep(*schedule, place.team().size);
  switch (place.choose(kind, bytes)) {
    case Algorithm::bruck: bruck(*schedule, place.team(), in, out); break;
    case Algorithm::ring: ring(*schedule, place.team(), in, out); break;
    default: direct(*schedule, place.team(), in, out);
  }
  return schedule;
}

}  // namespace

Schedule* allgather(const Place& place, const Data& in, const Blocks& out) {
  if (place.is_inter()) return inter::allgather(place, in, out);
  return build(place, Kind::allgather, out[0].bytes(), in, out);
}

Schedule* allgatherv(const Place& place, const Data& in, const Blocks& out) {
  if (place.is_inter()) return inter::allgatherv(place, in, out);
  return build(place, Kind::allgatherv, 0, in, out);
}

}  // namespace headway::collectives
