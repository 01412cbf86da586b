// Collectives of neighbours: a block along each edge of the communicator's topology.
#include "collectives/neighbours.h"

#include "collectives/collectives.h"

namespace headway::collectives {
namespace {

// Everything at once. All messages of a schedule have one tag, so that those between two ranks keep
// their order. sent(i): what goes along edge i.
//
// There is one algorithm so far. One that carries the small blocks of a node's ranks for another
// node in one message would be chosen here, by Place::choose, and would need a plan that is made
// with the topology and kept in it.
template <class Sent>
void direct(Schedule& schedule, const Place& place, Sent&& sent, const Blocks& out) {
  const Team team = place.team();
  const objects::Topology& topology = *place.comm->topology;
  each_own(topology, team.self,
           [&](int edge, int block) { schedule.copy(sent(edge).memory(), out[block].memory()); });
  each_receive(topology, team.self,
               [&](int block, int rank) { schedule.receive(team, rank, out[block].memory()); });
  each_send(topology, team.self,
            [&](int edge, int rank) { schedule.send(team, rank, sent(edge).memory()); });
}

}  // namespace

Schedule* neighbor_allgather(const Place& place, const Data& in, const Blocks& out, Kind kind) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, kind);
  if (!schedule) return nullptr;
  schedule->keep(in.type);
  out.keep(*schedule, place.comm->topology->sources().count);
  direct(*schedule, place, [&in](int) { return in; }, out);
  return schedule;
}

Schedule* neighbor_alltoall(const Place& place, const Blocks& in, const Blocks& out, Kind kind) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, kind);
  if (!schedule) return nullptr;
  in.keep(*schedule, place.comm->topology->targets().count);
  out.keep(*schedule, place.comm->topology->sources().count);
  direct(*schedule, place, [&in](int edge) { return in[edge]; }, out);
  return schedule;
}

}  // namespace headway::collectives
