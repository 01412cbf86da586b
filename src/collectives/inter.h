// Inter: the collectives of an inter-communicator. Each is one schedule: what the ranks of a side
// do among themselves, what crosses the bridge between the sides, and what is done with it there.
// Large data crosses it in pieces between many ranks at once, and is passed on piece by piece.
// Thread: any application thread, without the engine. Owns nothing. Null without memory.
// Invariants: arguments were checked by api/; both sides know alike whatever the way depends on; of
// one schedule, messages between two ranks are sent in the order in which they are received.
#pragma once
#include "collectives/collectives.h"

namespace headway::collectives::inter {

// What the ranks of the root's side pass: the root, and those beside it, who have no part in it.
// The other side passes the root's rank.
inline constexpr int root_itself = abi::k_ROOT, beside_root = abi::k_PROC_NULL;

Schedule* barrier(const Place& place);
Schedule* bcast(const Place& place, const Data& data, int root);
// `in` and `out` mean something on one side each: that of the root has the blocks.
Schedule* gather(const Place& place, const Data& in, const Blocks& out, int root);
Schedule* gatherv(const Place& place, const Data& in, const Blocks& out, int root);
Schedule* scatter(const Place& place, const Blocks& in, const Data& out, int root);
Schedule* scatterv(const Place& place, const Blocks& in, const Data& out, int root);
// To all ranks what those of the other side have.
Schedule* allgather(const Place& place, const Data& in, const Blocks& out);
Schedule* allgatherv(const Place& place, const Data& in, const Blocks& out);
Schedule* alltoall(const Place& place, const Blocks& in, const Blocks& out, Kind kind);

// `out` is what the other side's vectors are folded to.
Schedule* reduce(const Place& place, const Data& in, const Data& out, const Reduction& reduction,
                 int root);
Schedule* allreduce(const Place& place, const Data& in, const Data& out,
                    const Reduction& reduction);
// starts[rank]: where the blocks of the own side begin in a vector. Both sides' are as long.
Schedule* reduce_scatter(const Place& place, Kind kind, const Data& in, void* out,
                         const base::Vec<uint64_t>& starts, const Reduction& reduction);

// For the library's own use. `data` of one side's first rank to all ranks of both sides; which
// side: the one that leads (Comm::leads), or the other.
Schedule* tell(const Place& place, const Data& data, bool by_leading);
// `in` of all ranks of both sides to all of them.
Schedule* share(const Place& place, const Data& in, const Blocks& own, const Blocks& others);

}  // namespace headway::collectives::inter
