// Barrier and broadcast.
#include "collectives/collectives.h"

namespace headway::collectives {

Schedule* barrier(protocols::Engine& engine, objects::Comm* comm) {
  Schedule* schedule = Schedule::make(engine, comm, Kind::barrier);
  if (!schedule) return nullptr;
  // Dissemination: in each round hear from, and tell, ranks at twice the distance.
  StepId before = no_step;
  for (int distance = 1; distance < comm->size; distance *= 2) {
    const int to = (comm->rank + distance) % comm->size;
    const int from = (comm->rank + comm->size - distance) % comm->size;
    schedule->send(to, {}, before);
    before = schedule->receive(from, {}, before);
  }
  return schedule;
}

Schedule* bcast(protocols::Engine& engine, objects::Comm* comm, const Data& data, int root) {
  Schedule* schedule = Schedule::make(engine, comm, Kind::bcast);
  if (!schedule) return nullptr;
  schedule->keep(data.type);
  const int size = comm->size;
  const int self = (comm->rank - root + size) % size;
  // Binomial tree over ranks counted from the root.
  StepId arrived = no_step;
  int distance = 1;
  for (; distance < size; distance *= 2) {
    if (!(self & distance)) continue;
    arrived = schedule->receive((self - distance + root) % size, data.memory());
    break;
  }
  for (distance /= 2; distance > 0; distance /= 2) {
    if (self + distance < size) {
      schedule->send((self + distance + root) % size, data.memory(), arrived);
    }
  }
  return schedule;
}

}  // namespace headway::collectives
