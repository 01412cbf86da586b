// Barrier and broadcast.
#include "collectives/collectives.h"
#include "collectives/tree.h"

namespace headway::collectives {

Schedule* barrier(const Place& place) {
  objects::Comm* comm = place.comm;
  Schedule* schedule = Schedule::make(place.engine, comm, Kind::barrier);
  if (!schedule) return nullptr;
  if (place.choose(Kind::barrier, 0) == Algorithm::direct) {
    for (int step = 1; step < comm->size; ++step) {
      schedule->receive((comm->rank + comm->size - step) % comm->size, {});
      schedule->send((comm->rank + step) % comm->size, {});
    }
    return schedule;
  }
  // Dissemination: in each round hear from, and tell, ranks at twice the distance.
  StepId before = no_step;
  for (int distance = 1; distance < comm->size; distance *= 2) {
    const int to = (comm->rank + distance) % comm->size;
    const int from = (comm->rank + comm->size - distance) % comm->size;
    schedule->send(to, {}, before);
    before = schedule->receive(from, {}, before);
    if (distance > comm->size / 2) break;
  }
  return schedule;
}

namespace {

void bcast_direct(Schedule& schedule, const objects::Comm* comm, const UserMemory& memory,
                  int root) {
  if (comm->rank != root) {
    schedule.receive(root, memory);
    return;
  }
  for (int step = 1; step < comm->size; ++step) schedule.send((root + step) % comm->size, memory);
}

void bcast_binomial(Schedule& schedule, const objects::Comm* comm, const UserMemory& memory,
                    int root) {
  const Binomial tree(comm, root);
  StepId arrived = no_step;
  if (!tree.is_root()) arrived = schedule.receive(tree.parent(), memory);
  for (int distance = tree.reach / 2; distance > 0; distance /= 2) {
    if (tree.has_child(distance)) schedule.send(tree.child(distance), memory, arrived);
  }
}

// The root's bytes in as many pieces as ranks: down a binomial tree, then round a ring.
void bcast_scatter_allgather(Schedule& schedule, const objects::Comm* comm,
                             const UserMemory& memory, int root) {
  const uint64_t bytes = memory.bytes();
  const Binomial tree(comm, root);
  char* data = memory.is_flat() ? memory.flat() : schedule.scratch(bytes);
  if (schedule.failed()) return;
  const auto start = [&](int piece) { return bytes / uint64_t(comm->size) * uint64_t(piece); };
  const auto pieces = [&](int first, int end) {
    const uint64_t from = start(first), to = end == comm->size ? bytes : start(end);
    return UserMemory(data + from, to - from);
  };
  StepId ready = no_step;
  if (tree.is_root()) {
    if (!memory.is_flat()) ready = schedule.copy(memory, UserMemory(data, bytes));
  } else {
    ready = schedule.receive(tree.parent(), pieces(tree.self, tree.self + tree.subtree()));
  }
  const StepId everything = schedule.join();
  for (int distance = tree.reach / 2; distance > 0; distance /= 2) {
    if (!tree.has_child(distance)) continue;
    const int first = tree.self + distance;
    const int end = first + distance < comm->size ? first + distance : comm->size;
    schedule.depends(everything, schedule.send(tree.child(distance), pieces(first, end), ready));
  }
  // What the tree gave beyond a rank's own piece comes once more round the ring; leaving it out
  // would make the ranks' rounds differ.
  const int next = (comm->rank + 1) % comm->size;
  const int before = (comm->rank + comm->size - 1) % comm->size;
  schedule.depends(everything, ready);
  StepId turn = everything;
  for (int round = 0; round + 1 < comm->size; ++round) {
    const int gives = (tree.self + comm->size - round) % comm->size;
    const int takes = (gives + comm->size - 1) % comm->size;
    schedule.send(next, pieces(gives, gives + 1), turn);
    turn = schedule.receive(before, pieces(takes, takes + 1), turn);
  }
  if (!memory.is_flat() && !tree.is_root()) schedule.copy(UserMemory(data, bytes), memory, turn);
}

}  // namespace

Schedule* bcast(const Place& place, const Data& data, int root) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::bcast);
  if (!schedule) return nullptr;
  schedule->keep(data.type);
  switch (place.choose(Kind::bcast, data.bytes())) {
    case Algorithm::direct: bcast_direct(*schedule, place.comm, data.memory(), root); break;
    case Algorithm::scatter_allgather:
      bcast_scatter_allgather(*schedule, place.comm, data.memory(), root);
      break;
    default: bcast_binomial(*schedule, place.comm, data.memory(), root);
  }
  return schedule;
}

}  // namespace headway::collectives
