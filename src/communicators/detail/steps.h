// Steps: what the files of this room have in common, which make communicators. Thread: any
// application thread, without the engine. Owns nothing. Invariant: as in communicators.h.
#pragma once
#include "base/vec.h"
#include "collectives/collectives.h"
#include "communicators/communicators.h"
#include "p2p/p2p.h"

namespace headway::communicators {

// A new communicator of `group`, with its handle. With a `remote` group it is an
// inter-communicator, whose own side leads or not (Comm::leads).
Outcome adopt(const Makers& makers, const objects::Comm& parent, uint64_t context,
              objects::Group* group, objects::Comm*& made, objects::Group* remote = nullptr,
              bool leads = false);

struct Place {
  int key;
  int rank;
};
// Stable by key, then by old rank; the ranks come in order, so equal keys keep theirs. False
// without memory: nothing is sorted, which the other ranks would not know.
bool sort_places(base::Vec<Place>& places);

// The group's rank `root` tells the others what `memory` holds, in messages of `comm` that `apart`
// keeps from all else. False without memory.
bool tell(const Makers& makers, objects::Comm* comm, const objects::Group& group, int root, int tag,
          uint64_t apart, const protocols::UserMemory& memory);

// To one rank of a communicator.
struct Line {
  p2p::Address other;
  uint64_t apart;  // by which its messages differ from others of that communicator
};
// Both ends send at once.
Outcome swap(const Makers& makers, const Line& line, const protocols::UserMemory& out,
             const protocols::UserMemory& in);

// For collectives of our own, on `comm`.
collectives::Place place_of(const Makers& makers, objects::Comm* comm);
// Runs it until all of its data is there: nobody has to read what came before its memory goes.
// Null: no memory.
Outcome run_whole(const Makers& makers, collectives::Schedule* schedule);
// Every rank gives `width` numbers; afterwards all have those of all.
Outcome share_numbers(const Makers& makers, objects::Comm* comm, base::Vec<int64_t>& numbers,
                      size_t width, const int64_t* own);

// Which messages belong to the creation of which communicator: by its members and its tag.
uint64_t mark_of(const Makers& makers, const objects::Group& group, const char* tag);
// What the numbers of a group's processes mean to other processes, and back. False: no memory, or a
// process that this one has not met.
bool identities_of(const Makers& makers, const objects::Group& group,
                   base::Vec<uint64_t>& identities);
bool members_of(const Makers& makers, const base::Vec<uint64_t>& identities, objects::Group& group);

inline const datatypes::Type* int64_type() {
  return &datatypes::predefined(datatypes::BasicType::int64_t);
}

}  // namespace headway::communicators
