// Window: a window for one-sided communication: its own memory, what is known of the other ranks'
// memory, and which epochs are open. Thread: holder of the engine, except what its user alone
// changes (objects/window.h). Owner: the handle; it lives from rma::make() to rma::dissolve().
// Invariants: nothing goes to a target by another way before what went by the last one is carried
// out, so that no operation overtakes another; `sent` is never less than `asked`, and that never
// less than `told`.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/list.h"
#include "base/vec.h"
#include "objects/window.h"
#include "protocols/segment.h"
#include "rma/far.h"
#include "rma/locks.h"
#include "rma/memory.h"
#include "rma/wire.h"

namespace headway::protocols {
struct Peer;
}

namespace headway::rma {

struct Window;

// How this rank has locked a target. unchecked: the program says that nobody else does.
enum class Hold : uint8_t { none, shared, exclusive, unchecked };

// Small operations on one target, all of one kind and without answers, that leave as one frame.
struct Batch {
  static constexpr uint32_t most_bytes = 2048, most_places = 64;

  Kind kind;
  int32_t tag;
  uint32_t count;  // runs; 0: nothing waits
  uint32_t bytes;
  Run runs[most_places];
  char data[most_bytes];
};
static_assert(sizeof(Head) + Batch::most_places * sizeof(Run) + Batch::most_bytes <= most_body);

// One rank of a window, as its others see it. Zero bytes are one of which nothing is known yet.
struct Target {
  Window* window;
  uint32_t rank;          // in the window
  uint32_t id;            // by which frames name the window there
  uint64_t size;          // of its memory; of a dynamic window 0
  int64_t unit;           // of displacements
  char* shown;            // its memory as the program here sees it; null: it does not
  Memory direct;          // the same, where operations work in it themselves; else base is null
  Far far;                // the same by the system's copies between processes
  protocols::Peer* peer;  // null: not asked for yet

  // --- it as a target ---
  uint64_t sent, told;  // operations without an answer that left, and that it says are carried out
  uint64_t asked;       // of `sent`, those that it was asked about
  uint64_t answers;     // to flushes and unlocks, that have come
  uint32_t unanswered;  // frames whose answers have not come
  uint32_t requests;    // operations that bring something and are not complete
  uint32_t posts;       // times that it has exposed its memory to us, not used up
  Hold hold;
  bool given;    // it has said so, or its word has
  bool by_word;  // the latter: nobody was asked
  bool started;  // in the group of MPI_Win_start
  bool failed;   // some operation did not find its memory
  bool framed;   // though it is near: frames went to it that may not be carried out yet
  Batch* batch;  // null: none has been needed yet

  // --- it as an origin ---
  uint64_t done;       // operations without an answer that were carried out here
  uint32_t completes;  // times that it has ended its accesses, not used up
  bool refused;        // some did not find their memory, and it has not heard of it

  bool is_direct() const { return direct.base != nullptr; }
  // No frame is needed.
  bool is_near() const { return is_direct() || far.is_usable(); }
  // Asked also by those who do not hold the engine.
  bool is_framed() const { return __atomic_load_n(&framed, __ATOMIC_RELAXED); }
  void set_framed(bool is) { __atomic_store_n(&framed, is, __ATOMIC_RELAXED); }
  bool has_batch() const { return batch && batch->count != 0; }
  // One more run of so many bytes leaves with what waits already.
  bool has_room_in_batch(uint64_t bytes) const {
    return !has_batch() ||
           (batch->count < Batch::most_places && batch->bytes + bytes <= Batch::most_bytes);
  }
  // All that it was to do without an answer is done, as far as it has said.
  bool is_quiet() const { return told == sent && !has_batch(); }
  // Its lock word, if it is seen here.
  LockWord* lock_word() const {
    Stripes* stripes = is_direct() ? direct.stripes : far.stripes;
    return stripes ? &stripes->lock : nullptr;
  }
};

// The access epoch of the whole window; locks of single targets are beside it.
enum class Epoch : uint8_t { none, fence, start, lock_all };

struct Window : objects::Window {
  base::Vec<Target> targets;  // by rank; they stay where they are
  uint32_t id = 0;            // Windows' number of it
  uint32_t self = 0;
  Memory own;
  base::List<Attached> attached;  // dynamic
  protocols::Reach::Use use;      // others may be at its memory at any time: no page is closed
  protocols::Segment segment;     // shared with the ranks of this host

  Epoch epoch = Epoch::none;
  // Operations have begun since the last fence: noted by any thread that begins one.
  std::atomic<bool> fence_used{false};
  bool unchecked = false;  // lock_all: nobody else locks
  bool follows = false;    // what is small goes by frames to a target that waits in MPI
  uint32_t locked = 0;     // targets, by MPI_Win_lock
  bool is_exposed = false;
  base::Vec<int> accessed;  // ranks of MPI_Win_start
  base::Vec<int> exposed;   // ranks of MPI_Win_post
  Locks locks;              // of our own memory

  Target& target(int rank) { return targets[size_t(rank)]; }
  // This rank may access that one now.
  bool may_access(int rank) const {
    const Target& one = targets[size_t(rank)];
    return epoch == Epoch::fence || epoch == Epoch::lock_all || one.started ||
           one.hold != Hold::none;
  }
  bool is_passive(int rank) const {
    return epoch == Epoch::lock_all || targets[size_t(rank)].hold != Hold::none;
  }
  // An epoch in which operations have begun, or that its user has to end himself.
  bool has_access_epoch() const {
    return epoch == Epoch::start || epoch == Epoch::lock_all || locked != 0 ||
           (epoch == Epoch::fence && is_fence_used());
  }
  bool is_fence_used() const { return fence_used.load(std::memory_order_relaxed); }
  void note_use() {
    if (epoch == Epoch::fence && !is_fence_used()) {
      fence_used.store(true, std::memory_order_relaxed);
    }
  }
  // Nothing has to be asked or waited for before the target's memory is accessed.
  bool is_at_hand(const Target& one) const {
    return one.is_direct() && (epoch == Epoch::fence || one.started || one.given);
  }
};

}  // namespace headway::rma
