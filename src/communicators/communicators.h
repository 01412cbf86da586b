// Communicators: making new ones out of old ones. They communicate: the members agree on a
// context. Thread: any application thread, without the engine. Owner: the new Comm goes to the
// caller with one reference and its handle. Invariants: handles and ranks were checked by api/; a
// context is chosen by one member, from its own numbers, and told to the others.
#pragma once
#include <cstdint>

#include "objects/comm.h"
#include "objects/registry.h"
#include "protocols/request.h"

namespace headway::waiting {
class Waiter;
}

namespace headway::communicators {

// What the functions need of the process.
struct Makers {
  waiting::Waiter& waiter;
  objects::Registry& registry;
  uint64_t (*new_context)();
};

// Same group and topology, new context. `made` is null on failure.
Outcome dup(const Makers& makers, objects::Comm* comm, objects::Comm*& made);
// The same without waiting: the communicator may be used when the request is complete.
protocols::Request* start_dup(const Makers& makers, objects::Comm* comm, objects::Comm*& made);
// Ranks of one color together, in order of key and old rank. color < 0: in no group, `made` null.
Outcome split(const Makers& makers, objects::Comm* comm, int color, int key, objects::Comm*& made);
// The ranks of `group`, which all ranks of `comm` call (with disjoint groups, or none: empty).
Outcome create(const Makers& makers, objects::Comm* comm, objects::Group* group,
               objects::Comm*& made);
// The same, called by the members alone; `tag` tells concurrent calls apart.
Outcome create_group(const Makers& makers, objects::Comm* comm, objects::Group* group, int tag,
                     objects::Comm*& made);

// A communicator of the group's members, who all call this; `tag` tells concurrent calls apart.
Outcome create_from_group(const Makers& makers, objects::Group* group, const char* tag,
                          objects::Comm*& made);
// Is this the context of its messages? They may come while a rank has no session.
bool makes_from_group(uint64_t context);

}  // namespace headway::communicators
