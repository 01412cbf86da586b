// Barrier and broadcast.
#include "collectives/chain.h"
#include "collectives/inter.h"
#include "collectives/phases.h"
#include "collectives/pieces.h"
#include "collectives/tree.h"

namespace headway::collectives {

StepId disseminate(Schedule& schedule, Team team) {
  // In each round hear from, and tell, ranks at twice the distance.
  StepId before = no_step;
  for (int distance = 1; distance < team.size; distance *= 2) {
    const int to = (team.self + distance) % team.size;
    const int from = (team.self + team.size - distance) % team.size;
    schedule.send(team, to, {}, before);
    before = schedule.receive(team, from, {}, before);
    if (distance > team.size / 2) break;
  }
  return before;
}

Schedule* barrier(const Place& place) {
  if (place.is_inter()) return inter::barrier(place);
  const Team team = place.team();
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::barrier);
  if (!schedule) return nullptr;
  if (place.choose(Kind::barrier, 0) == Algorithm::direct) {
    for (int step = 1; step < team.size; ++step) {
      schedule->receive(team, (team.self + team.size - step) % team.size, {});
      schedule->send(team, (team.self + step) % team.size, {});
    }
    return schedule;
  }
  disseminate(*schedule, team);
  return schedule;
}

namespace {

void bcast_direct(Schedule& schedule, Team team, const UserMemory& memory, int root) {
  if (team.self != root) {
    schedule.receive(team, root, memory);
    return;
  }
  for (int step = 1; step < team.size; ++step)
    schedule.send(team, (root + step) % team.size, memory);
}

void bcast_binomial(Schedule& schedule, Team team, const UserMemory& memory, int root) {
  const Binomial tree(team, root);
  StepId arrived = no_step;
  if (!tree.is_root()) arrived = schedule.receive(team, tree.parent(), memory);
  for (int distance = tree.reach / 2; distance > 0; distance /= 2) {
    if (tree.has_child(distance)) schedule.send(team, tree.child(distance), memory, arrived);
  }
}

// The root's bytes in as many pieces as ranks: down a binomial tree, then round a ring.
void bcast_scatter_allgather(Schedule& schedule, Team team, const UserMemory& memory, int root) {
  const uint64_t bytes = memory.bytes();
  const Binomial tree(team, root);
  char* data = memory.is_flat() ? memory.flat() : schedule.scratch(bytes);
  if (schedule.failed()) return;
  const auto start = [&](int piece) { return bytes / uint64_t(team.size) * uint64_t(piece); };
  const auto pieces = [&](int first, int end) {
    const uint64_t from = start(first), to = end == team.size ? bytes : start(end);
    return UserMemory(data + from, to - from);
  };
  StepId ready = no_step;
  if (tree.is_root()) {
    if (!memory.is_flat()) ready = schedule.copy(memory, UserMemory(data, bytes));
  } else {
    ready = schedule.receive(team, tree.parent(), pieces(tree.self, tree.self + tree.subtree()));
  }
  const StepId everything = schedule.join();
  for (int distance = tree.reach / 2; distance > 0; distance /= 2) {
    if (!tree.has_child(distance)) continue;
    const int first = tree.self + distance;
    const int end = first + distance < team.size ? first + distance : team.size;
    schedule.depends(everything,
                     schedule.send(team, tree.child(distance), pieces(first, end), ready));
  }
  // What the tree gave beyond a rank's own piece comes once more round the ring; leaving it out
  // would make the ranks' rounds differ.
  const int next = (team.self + 1) % team.size;
  const int before = (team.self + team.size - 1) % team.size;
  schedule.depends(everything, ready);
  StepId passed = everything;
  for (int round = 0; round + 1 < team.size; ++round) {
    const int gives = (tree.self + team.size - round) % team.size;
    const int takes = (gives + team.size - 1) % team.size;
    schedule.send(team, next, pieces(gives, gives + 1), passed);
    passed = schedule.receive(team, before, pieces(takes, takes + 1), passed);
  }
  if (!memory.is_flat() && !tree.is_root()) schedule.copy(UserMemory(data, bytes), memory, passed);
}

// In pieces from node to node, the root's first, and in each node down a tree. A piece is passed on
// while the next one comes, so that a long message takes little more than its way over one wire.
// Ranks that pass nothing on have receives alone, which may be released early.
void bcast_chain(Schedule& schedule, const Place& place, const UserMemory& memory, int root) {
  const Team team = place.team();
  Chain chain;
  if (!chain.make(team, root, [&](int rank) { return place.node_of(rank); })) schedule.fail();
  const uint64_t bytes = memory.bytes();
  char* data = memory.is_flat() ? memory.flat() : schedule.scratch(bytes);
  if (schedule.failed()) return;
  const bool is_root = team.self == root, passes_on = chain.passes_on();
  StepId ready = no_step;
  if (is_root && !memory.is_flat()) ready = schedule.copy(memory, UserMemory(data, bytes));
  const StepId everything = memory.is_flat() || is_root ? no_step : schedule.join();
  const Pieces pieces(bytes);
  for (uint64_t piece = 0; piece < pieces.count(); ++piece) {
    const UserMemory part(data + pieces.start(piece), pieces.length(piece));
    StepId came = no_step;
    if (!is_root) {
      came = schedule.receive(team, chain.from(), part);
      schedule.depends(everything, came);
      if (!passes_on) continue;
    }
    if (came != no_step || ready != no_step) {
      // Pieces are sent in their order, whichever is here first; and what waits for one step alone
      // does not begin in the order in which it was made.
      const StepId in_order = schedule.join();
      schedule.depends(in_order, came);
      schedule.depends(in_order, ready);
      ready = in_order;
    }
    if (chain.next() != Chain::nobody) schedule.send(team, chain.next(), part, ready);
    chain.each_beside([&](int rank) { schedule.send(team, rank, part, ready); });
  }
  if (everything != no_step) schedule.copy(UserMemory(data, bytes), memory, everything);
}

}  // namespace

Schedule* bcast(const Place& place, const Data& data, int root) {
  if (place.is_inter()) return inter::bcast(place, data, root);
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::bcast);
  if (!schedule) return nullptr;
  schedule->keep(data.type);
  switch (place.choose(Kind::bcast, data.bytes())) {
    case Algorithm::direct: bcast_direct(*schedule, place.team(), data.memory(), root); break;
    case Algorithm::scatter_allgather:
      bcast_scatter_allgather(*schedule, place.team(), data.memory(), root);
      break;
    case Algorithm::chain: bcast_chain(*schedule, place, data.memory(), root); break;
    default: bcast_binomial(*schedule, place.team(), data.memory(), root);
  }
  return schedule;
}

}  // namespace headway::collectives
