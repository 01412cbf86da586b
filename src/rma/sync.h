// Sync: the epochs of windows: fences, post and start, locks, flushes: MPI 5.0, section 12.5.
// Thread: any application thread, without the engine. Owns nothing. Invariant: arguments were
// checked by api/, the state of the epochs too; a call that gives `outside` has done its work, but
// some operation before it did not find its memory in a dynamic window.
#pragma once
#include "base/outcome.h"
#include "objects/group.h"
#include "rma/window.h"

namespace headway::waiting {
class Waiter;
}

namespace headway::rma {

// --- all ranks of the window ---
// `precedes`: operations of this rank may come to their end; `succeeds`: others may begin.
Outcome fence(waiting::Waiter& waiter, Window& window, bool precedes, bool succeeds);
// A barrier of the window's ranks.
Outcome meet(waiting::Waiter& waiter, Window& window);

// --- some of them: ranks in the window. `checked`: the others have said, or hear, that they do the
// same; without it they know ---
Outcome start(waiting::Waiter& waiter, Window& window, const base::Vec<int>& ranks, bool checked);
Outcome complete(waiting::Waiter& waiter, Window& window);
Outcome post(waiting::Waiter& waiter, Window& window, const base::Vec<int>& ranks, bool checked);
// All whom the memory was exposed to have ended their accesses. False: not yet, at one look.
bool wait(waiting::Waiter& waiter, Window& window, bool until_over);

// --- one target, or all ---
Outcome lock(waiting::Waiter& waiter, Window& window, int rank, Hold hold);
Outcome unlock(waiting::Waiter& waiter, Window& window, int rank);
Outcome lock_all(waiting::Waiter& waiter, Window& window, bool unchecked);
Outcome unlock_all(waiting::Waiter& waiter, Window& window);

constexpr int all_ranks = -1;
// Operations to that target are complete there, or (local) their buffers are the program's again.
Outcome flush(waiting::Waiter& waiter, Window& window, int rank);
Outcome flush_local(waiting::Waiter& waiter, Window& window, int rank);

// All that this rank has sent about the window has been taken by the others, and they will send
// nothing more about it: before the window goes, on all its ranks.
Outcome part(waiting::Waiter& waiter, Window& window);

// With the engine held: what an operation needs first in an epoch of lock_all: the target's lock,
// which is asked for when it is first accessed. no_memory: nothing is known of it.
Outcome approach(waiting::Waiter& waiter, Window& window, Target& target);
// With the engine held: a frame is looked at at once by that target, which is near.
bool is_looking(waiting::Waiter& waiter, const Target& target);
// What waits to leave together for a target that is near leaves, or is put there by ourselves.
// What the copy ended with.
Outcome settle_batch(waiting::Waiter& waiter, Target& target);
// With the engine held, but for the waits: what went by frames to a target that is near is over.
Outcome finish_frames(waiting::Waiter& waiter, Target& target);

}  // namespace headway::rma
