// Alltoall, with blocks of one length, of many, or of many types.
#include "collectives/inter.h"
#include "collectives/nodes.h"

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

// Two rounds. First within the node: a rank gets all that the ranks beside it have for those of its
// own place in any node. Then between nodes, to each of these one message with the blocks of the
// whole node, which lie side by side where they are to be received.
void by_node(Schedule& schedule, Team team, int ranks_a_node, const Blocks& in, const Blocks& out) {
  const Nodes nodes(team, ranks_a_node);
  const uint64_t block = out[team.self].bytes();
  char* leaving = schedule.scratch(block, team.size);  // for each place, its blocks for all nodes
  char* coming = schedule.scratch(block, team.size);   // the same, from each place
  char* bound = schedule.scratch(block, team.size);    // for each node, the blocks of all places
  if (schedule.failed()) return;
  const auto at = [block](char* base, int first, int blocks = 1) {
    return UserMemory(base + block * uint64_t(first), block * uint64_t(blocks));
  };
  const auto for_place = [&](int place, int node) { return place * nodes.count + node; };
  const StepId packed = schedule.join(), filled = schedule.join();
  const Blocks& source = in.in_place() ? out : in;
  for (int rank = 0; rank < team.size; ++rank) {
    const int node = rank / nodes.each, place = rank % nodes.each;
    const UserMemory to =
        place == nodes.place ? at(bound, rank) : at(leaving, for_place(place, node));
    schedule.depends(packed, schedule.copy(source[rank].memory(), to));
  }
  schedule.depends(filled, packed);
  for (int step = 1; step < nodes.each; ++step) {
    const int to = nodes.place_after(step), from = nodes.place_before(step);
    schedule.send(team, nodes.rank_of(nodes.node, to), at(leaving, for_place(to, 0), nodes.count),
                  packed);
    const StepId came = schedule.receive(team, nodes.rank_of(nodes.node, from),
                                         at(coming, for_place(from, 0), nodes.count));
    for (int node = 0; node < nodes.count; ++node) {
      schedule.depends(filled, schedule.copy(at(coming, for_place(from, node)),
                                             at(bound, nodes.rank_of(node, from)), came));
    }
  }
  const auto blocks_of = [&](int node) {
    return out.range(nodes.first_of(node), nodes.each).memory();
  };
  for (int step = 1; step < nodes.count; ++step) {
    const int from = nodes.node_before(step), to = nodes.node_after(step);
    schedule.receive(team, nodes.rank_of(from, nodes.place), blocks_of(from),
                     in.in_place() ? packed : no_step);
    schedule.send(team, nodes.rank_of(to, nodes.place), at(bound, nodes.first_of(to), nodes.each),
                  filled);
  }
  schedule.copy(at(bound, nodes.first_of(nodes.node), nodes.each), blocks_of(nodes.node), filled);
}

void build(Schedule& schedule, const Place& place, const Blocks& in, const Blocks& out,
           Algorithm algorithm) {
  const Team team = place.team();
  in.keep(schedule, team.size);
  out.keep(schedule, team.size);
  if (algorithm == Algorithm::bruck) {
    bruck(schedule, team, in, out);
  } else if (algorithm == Algorithm::by_node) {
    by_node(schedule, team, place.ranks_a_node(), in, out);
  } else if (in.in_place()) {
    exchange_in_place(schedule, team, out, algorithm == Algorithm::pairwise);
  } else {
    exchange(schedule, team, in, out, algorithm == Algorithm::pairwise);
  }
}

}  // namespace

Schedule* alltoall(const Place& place, const Blocks& in, const Blocks& out) {
  if (place.is_inter()) return inter::alltoall(place, in, out, Kind::alltoall);
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::alltoall);
  if (!schedule) return nullptr;
  build(*schedule, place, in, out, place.choose(Kind::alltoall, out[0].bytes()));
  return schedule;
}

Schedule* alltoallv(const Place& place, const Blocks& in, const Blocks& out, Kind kind) {
  if (place.is_inter()) return inter::alltoall(place, in, out, kind);
  Schedule* schedule = Schedule::make(place.engine, place.comm, kind);
  if (!schedule) return nullptr;
  build(*schedule, place, in, out, place.choose(kind, 0));
  return schedule;
}

}  // namespace headway::collectives
