// Agree: a few numbers of every rank, told to all: what collective calls on files settle before
// they do anything. Thread: any application thread, without the engine; waits. Owns nothing.
// Invariant: all ranks of the communicator call it, in the same order.
#pragma once
#include <cstdint>

#include "base/outcome.h"
#include "base/vec.h"
#include "objects/comm.h"

namespace headway::waiting {
class Waiter;
}

namespace headway::io {

// `width` numbers of each rank, one rank after the other.
Outcome tell_all(waiting::Waiter& waiter, objects::Comm* comm, const int64_t* own, size_t width,
                 base::Vec<int64_t>& all);
// What rank 0 says.
Outcome tell_from_first(waiting::Waiter& waiter, objects::Comm* comm, int64_t* numbers,
                        size_t width);

// For strings that all ranks have to pass alike.
uint64_t mark_of(const char* text);
// The same on all ranks of one machine, and no others.
uint64_t machine_mark();

}  // namespace headway::io
