// Inter-communicators: making them out of two groups, and merging both into one. The leaders of the
// groups talk with each other; each tells its group. Thread: any application thread, without the
// engine. Owner: as in communicators.h. Invariants: arguments were checked by api/, those of the
// leaders by theirs; a context is chosen by one of the leaders, and the side of the one that chose
// leads (Comm::leads): it comes first wherever the program does not say which does.
#pragma once
#include "communicators/communicators.h"

namespace headway::communicators {

// What came of the leaders' talk; all ranks of a group hear the same.
enum class Meeting : uint8_t {
  made,
  refused,  // the own leader's arguments were wrong, and there was none
  shared,   // a process is in both groups
  differ    // one side takes for the other's group what is not
};

// The other side's leader, for the own one: `rank` in `comm`, of an inter-communicator in its
// remote group. Without a communicator the own leader's arguments were wrong.
struct OtherLeader {
  objects::Comm* comm = nullptr;
  int rank = 0;
  int tag = 0;
};

// All ranks of `local` call this; `other` means something at its rank `leader` alone. `made` is
// null unless `meeting` is Meeting::made.
Outcome create_inter(const Makers& makers, objects::Comm* local, int leader,
                     const OtherLeader& other, objects::Comm*& made, Meeting& meeting);

// The same without a communicator, by the members of `local`. `remote` and its rank
// `remote_leader` mean something at the leader alone; null: its arguments were wrong.
Outcome create_inter_from_groups(const Makers& makers, objects::Group* local, int leader,
                                 const objects::Group* remote, int remote_leader, const char* tag,
                                 objects::Comm*& made, Meeting& meeting);

// One communicator of both sides; the ranks of a side that passes `high` come behind those of one
// that does not. What counts is what the first ranks pass.
Outcome merge(const Makers& makers, objects::Comm* comm, bool high, objects::Comm*& made);

// split() and create() of an inter-communicator, which both sides call. The ranks of one color of
// both sides, or the groups that they pass, have a new one together; none where one has nobody.
Outcome split_sides(const Makers& makers, objects::Comm* comm, int color, int key,
                    objects::Comm*& made);
Outcome create_of_sides(const Makers& makers, objects::Comm* comm, objects::Group* group,
                        objects::Comm*& made);

}  // namespace headway::communicators
