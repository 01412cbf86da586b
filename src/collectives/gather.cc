// Gather and scatter, with blocks of one length or of many.
#include "collectives/collectives.h"
#include "collectives/tree.h"

namespace headway::collectives {
namespace {

// The root receives every block where it belongs.
void gather_direct(Schedule& schedule, Team team, const Data& in, const Blocks& out, int root) {
  if (team.self != root) {
    schedule.send(team, root, in.memory());
    return;
  }
  for (int step = 1; step < team.size; ++step) {
    const int from = (root + step) % team.size;
    schedule.receive(team, from, out[from].memory());
  }
  if (in.type) schedule.copy(in.memory(), out[root].memory());
}

// Packed blocks travel up a tree; a rank's memory holds those of its subtree, its own first.
void gather_binomial(Schedule& schedule, Team team, const Data& in, const Blocks& out, int root) {
  const Binomial tree(team, root);
  const bool is_root = tree.is_root();
  const Data own = is_root && !in.type ? out[root] : in;
  const uint64_t block = is_root ? out[root].bytes() : in.bytes();
  const int blocks = tree.subtree();
  if (!is_root && blocks == 1) {
    schedule.send(team, tree.parent(), in.memory());
    return;
  }
  char* packed = schedule.scratch(block, blocks);
  if (!packed) return;
  const StepId all = schedule.join();
  schedule.depends(all, schedule.copy(own.memory(), UserMemory(packed, block)));
  for (int distance = 1; distance < tree.reach; distance *= 2) {
    if (!tree.has_child(distance)) break;
    const int more = blocks - distance < distance ? blocks - distance : distance;
    const UserMemory memory(packed + block * uint64_t(distance), block * uint64_t(more));
    schedule.depends(all, schedule.receive(team, tree.child(distance), memory));
  }
  if (!is_root) {
    schedule.send(team, tree.parent(), UserMemory(packed, block * uint64_t(blocks)), all);
    return;
  }
  // The blocks lie in order from the root's on: two runs of ranks.
  const int first = team.size - root;
  schedule.copy(UserMemory(packed, block * uint64_t(first)), out.range(root, first).memory(), all);
  schedule.copy(UserMemory(packed + block * uint64_t(first), block * uint64_t(root)),
                out.range(0, root).memory(), all);
}

void scatter_direct(Schedule& schedule, Team team, const Blocks& in, const Data& out, int root) {
  if (team.self != root) {
    schedule.receive(team, root, out.memory());
    return;
  }
  for (int step = 1; step < team.size; ++step) {
    const int to = (root + step) % team.size;
    schedule.send(team, to, in[to].memory());
  }
  if (out.type) schedule.copy(in[root].memory(), out.memory());
}

void scatter_binomial(Schedule& schedule, Team team, const Blocks& in, const Data& out, int root) {
  const Binomial tree(team, root);
  const bool is_root = tree.is_root();
  const uint64_t block = is_root ? in[root].bytes() : out.bytes();
  const int blocks = tree.subtree();
  if (!is_root && blocks == 1) {
    schedule.receive(team, tree.parent(), out.memory());
    return;
  }
  char* packed = schedule.scratch(block, blocks);
  if (!packed) return;
  const StepId ready = schedule.join();
  if (is_root) {
    const int first = team.size - root;
    schedule.depends(ready, schedule.copy(in.range(root, first).memory(),
                                          UserMemory(packed, block * uint64_t(first))));
    schedule.depends(
        ready, schedule.copy(in.range(0, root).memory(),
                             UserMemory(packed + block * uint64_t(first), block * uint64_t(root))));
  } else {
    const UserMemory memory(packed, block * uint64_t(blocks));
    schedule.depends(ready, schedule.receive(team, tree.parent(), memory));
  }
  for (int distance = tree.reach / 2; distance > 0; distance /= 2) {
    if (!tree.has_child(distance)) continue;
    const int more = blocks - distance < distance ? blocks - distance : distance;
    schedule.send(team, tree.child(distance),
                  UserMemory(packed + block * uint64_t(distance), block * uint64_t(more)), ready);
  }
  if (out.type) schedule.copy(UserMemory(packed, block), out.memory(), ready);
}

}  // namespace

Schedule* gather(const Place& place, const Data& in, const Blocks& out, int root) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::gather);
  if (!schedule) return nullptr;
  if (in.type) schedule->keep(in.type);
  out.keep(*schedule, place.team().size);
  const uint64_t block = place.team().self == root ? out[root].bytes() : in.bytes();
  if (place.choose(Kind::gather, block) == Algorithm::binomial) {
    gather_binomial(*schedule, place.team(), in, out, root);
  } else {
    gather_direct(*schedule, place.team(), in, out, root);
  }
  return schedule;
}

Schedule* gatherv(const Place& place, const Data& in, const Blocks& out, int root) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::gatherv);
  if (!schedule) return nullptr;
  if (in.type) schedule->keep(in.type);
  out.keep(*schedule, place.team().size);
  gather_direct(*schedule, place.team(), in, out, root);
  return schedule;
}

Schedule* scatter(const Place& place, const Blocks& in, const Data& out, int root) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::scatter);
  if (!schedule) return nullptr;
  if (out.type) schedule->keep(out.type);
  in.keep(*schedule, place.team().size);
  const uint64_t block = place.team().self == root ? in[root].bytes() : out.bytes();
  if (place.choose(Kind::scatter, block) == Algorithm::binomial) {
    scatter_binomial(*schedule, place.team(), in, out, root);
  } else {
    scatter_direct(*schedule, place.team(), in, out, root);
  }
  return schedule;
}

Schedule* scatterv(const Place& place, const Blocks& in, const Data& out, int root) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::scatterv);
  if (!schedule) return nullptr;
  if (out.type) schedule->keep(out.type);
  in.keep(*schedule, place.team().size);
  scatter_direct(*schedule, place.team(), in, out, root);
  return schedule;
}

}  // namespace headway::collectives
