// Gather and scatter, with blocks of one length or of many.
#include "collectives/inter.h"
#include "collectives/phases.h"
#include "collectives/tree.h"

namespace headway::collectives {

// A rank's memory holds the blocks of its subtree, its own first.
StepId collect(Schedule& schedule, Team team, const UserMemory& own, int root, char*& packed) {
  const Binomial tree(team, root);
  const uint64_t block = own.bytes();
  const int blocks = tree.subtree();
  packed = nullptr;
  if (!tree.is_root() && blocks == 1) {
    schedule.send(team, tree.parent(), own);
    return no_step;
  }
  packed = schedule.scratch(block, blocks);
  if (!packed) return no_step;
  const StepId all = schedule.join();
  schedule.depends(all, schedule.copy(own, UserMemory(packed, block)));
  for (int distance = 1; distance < tree.reach; distance *= 2) {
    if (!tree.has_child(distance)) break;
    const int more = blocks - distance < distance ? blocks - distance : distance;
    const UserMemory memory(packed + block * uint64_t(distance), block * uint64_t(more));
    schedule.depends(all, schedule.receive(team, tree.child(distance), memory));
  }
  if (tree.is_root()) return all;
  schedule.send(team, tree.parent(), UserMemory(packed, block * uint64_t(blocks)), all);
  const StepId sent = schedule.join();  // launched behind it
  schedule.depends(sent, all);
  return sent;
}

void deal(Schedule& schedule, Team team, uint64_t block, const Data& out, int root, char* packed,
          StepId ready) {
  const Binomial tree(team, root);
  const int blocks = tree.subtree();
  if (!tree.is_root()) {
    if (blocks == 1) {
      schedule.receive(team, tree.parent(), out.memory());
      return;
    }
    packed = schedule.scratch(block, blocks);
    if (!packed) return;
    ready =
        schedule.receive(team, tree.parent(), UserMemory(packed, block * uint64_t(blocks)), ready);
  }
  for (int distance = tree.reach / 2; distance > 0; distance /= 2) {
    if (!tree.has_child(distance)) continue;
    const int more = blocks - distance < distance ? blocks - distance : distance;
    schedule.send(team, tree.child(distance),
                  UserMemory(packed + block * uint64_t(distance), block * uint64_t(more)), ready);
  }
  if (out.type) schedule.copy(UserMemory(packed, block), out.memory(), ready);
}

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

void gather_binomial(Schedule& schedule, Team team, const Data& in, const Blocks& out, int root) {
  const bool is_root = team.self == root;
  const Data own = is_root && !in.type ? out[root] : in;
  const uint64_t block = is_root ? out[root].bytes() : in.bytes();
  char* packed = nullptr;
  const StepId all = collect(schedule, team, own.memory(), root, packed);
  if (!is_root || !packed) return;
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
  const bool is_root = team.self == root;
  const uint64_t block = is_root ? in[root].bytes() : out.bytes();
  char* packed = nullptr;
  StepId ready = no_step;
  if (is_root) {
    packed = schedule.scratch(block, team.size);
    if (!packed) return;
    ready = schedule.join();
    const int first = team.size - root;
    schedule.depends(ready, schedule.copy(in.range(root, first).memory(),
                                          UserMemory(packed, block * uint64_t(first))));
    schedule.depends(
        ready, schedule.copy(in.range(0, root).memory(),
                             UserMemory(packed + block * uint64_t(first), block * uint64_t(root))));
  }
  deal(schedule, team, block, out, root, packed, ready);
}

}  // namespace

Schedule* gather(const Place& place, const Data& in, const Blocks& out, int root) {
  if (place.is_inter()) return inter::gather(place, in, out, root);
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
  if (place.is_inter()) return inter::gatherv(place, in, out, root);
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::gatherv);
  if (!schedule) return nullptr;
  if (in.type) schedule->keep(in.type);
  out.keep(*schedule, place.team().size);
  gather_direct(*schedule, place.team(), in, out, root);
  return schedule;
}

Schedule* scatter(const Place& place, const Blocks& in, const Data& out, int root) {
  if (place.is_inter()) return inter::scatter(place, in, out, root);
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
  if (place.is_inter()) return inter::scatterv(place, in, out, root);
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::scatterv);
  if (!schedule) return nullptr;
  if (out.type) schedule->keep(out.type);
  in.keep(*schedule, place.team().size);
  scatter_direct(*schedule, place.team(), in, out, root);
  return schedule;
}

}  // namespace headway::collectives
