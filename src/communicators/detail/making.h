// Making: what the files of this room share. Thread: any application thread, without the engine.
// Owns nothing. Invariant: all ranks of the communicator make the same calls in the same order.
#pragma once
#include <cstdint>

#include "base/vec.h"
#include "collectives/collectives.h"
#include "communicators/communicators.h"

namespace headway::communicators {

// For collectives of our own, on `comm`.
collectives::Place place_of(const Makers& makers, objects::Comm* comm);
// A communicator of that group with its handle, which gets the parent's error handler.
Outcome adopt_group(const Makers& makers, const objects::Comm& parent, uint64_t context,
                    objects::Group* group, objects::Comm*& made);
// Runs it until all of its data is there: nobody has to read what came before its memory goes.
// Null: no memory.
Outcome run_whole(const Makers& makers, collectives::Schedule* schedule);
// Every rank gives `width` numbers; afterwards all have those of all.
Outcome share_numbers(const Makers& makers, objects::Comm* comm, base::Vec<int64_t>& numbers,
                      size_t width, const int64_t* own);

}  // namespace headway::communicators
