// Team: the processes that talk with one another in a collective or over a communicator, in order:
// what an algorithm sees of a communicator. A view of 16 bytes, passed by value. Thread: any.
// Owner: who made it keeps the group whose members it shows. Invariant: `self` is this process's
// place in it, or undefined_rank if it is not in it, as in the remote group of an
// inter-communicator.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "objects/group.h"

namespace headway::objects {

struct Team {
  const uint32_t* members = nullptr;  // the number of each process, as in a group
  int size = 0;
  int self = undefined_rank;

  Team() = default;
  explicit Team(const Group& group) : members(group.members), size(group.size), self(group.self) {
    HEADWAY_CHECK(self == undefined_rank || (self >= 0 && self < size));
  }

  uint32_t process(int rank) const {
    HEADWAY_CHECK(rank >= 0 && rank < size);
    return members[rank];
  }
};

}  // namespace headway::objects
