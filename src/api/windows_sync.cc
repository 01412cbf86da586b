// Epochs of windows: MPI 5.0, section 12.5. Each body checks which epochs are open, and calls.
#include "api/detail/groups.h"
#include "api/detail/results.h"
#include "api/detail/windows.h"
#include "base/vec.h"
#include "rma/sync.h"

#include <atomic>

using namespace headway;
using namespace headway::api;

namespace {

using rma::Epoch;
using rma::Hold;
using rma::Window;

constexpr char still_open[] = "an epoch of the window is open already";
constexpr char end_it[] =
    "end it first: MPI_Win_complete, MPI_Win_unlock, MPI_Win_unlock_all, or MPI_Win_fence behind "
    "the last operation";

int check_assert(const Story& story, int given, int known) {
  if ((given & ~known) == 0) [[likely]]
    return MPI_SUCCESS;
  return raise(story, MPI_ERR_ASSERT, "the assert holds something that this call does not know");
}

int conclude(const Story& story, Outcome outcome) {
  return outcome == Outcome::ok ? MPI_SUCCESS : raise(story, outcome);
}

// The ranks of a group, all of which have to be in the window.
int take_ranks(const Story& story, MPI_Group handle, base::Vec<int>& ranks) {
  objects::Group* group;
  if (const int code = take_group(story, handle, group)) return code;
  objects::GroupIndex index;
  if (const Outcome built = index.build(*story.window->comm->group); built != Outcome::ok) {
    return raise(story, built);
  }
  for (int i = 0; i < group->size; ++i) {
    const int rank = index.find(group->members[i]);
    if (rank < 0) {
      return raise(story, MPI_ERR_GROUP, "a member of the group is not in the window",
                   "make the group of that of MPI_Win_get_group");
    }
    if (!ranks.push(rank)) return raise(story, Outcome::no_memory);
  }
  return MPI_SUCCESS;
}

int win_fence(const char* call, int assertion, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  constexpr int known = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
  if (const int code = check_assert(story, assertion, known)) return code;
  Window& window = window_of(story);
  if (window.epoch == Epoch::start || window.epoch == Epoch::lock_all || window.locked != 0 ||
      window.is_exposed) {
    return raise_sync(story, "an epoch that no fence has opened is still open",
                      "end it first: MPI_Win_complete, MPI_Win_wait, MPI_Win_unlock, or "
                      "MPI_Win_unlock_all");
  }
  if ((assertion & MPI_MODE_NOPRECEDE) && window.is_fence_used()) {
    return raise_sync(story, "MPI_MODE_NOPRECEDE is passed, and operations do precede",
                      "pass it only where nothing was done since the last fence");
  }
  const Inside inside(call, unset, unset, window.comm);
  return conclude(story,
                  rma::fence(process().waiter(), window, (assertion & MPI_MODE_NOPRECEDE) == 0,
                             (assertion & MPI_MODE_NOSUCCEED) == 0));
}

int win_start(const char* call, MPI_Group group, int assertion, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  if (const int code = check_assert(story, assertion, MPI_MODE_NOCHECK)) return code;
  base::Vec<int> ranks;
  if (const int code = take_ranks(story, group, ranks)) return code;
  Window& window = window_of(story);
  if (window.has_access_epoch()) return raise_sync(story, still_open, end_it);
  const Inside inside(call, unset, unset, window.comm);
  return conclude(
      story, rma::start(process().waiter(), window, ranks, (assertion & MPI_MODE_NOCHECK) == 0));
}

int win_complete(const char* call, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  Window& window = window_of(story);
  if (window.epoch != Epoch::start) {
    return raise_sync(story, "no epoch is open that MPI_Win_start has begun",
                      "call MPI_Win_start before");
  }
  const Inside inside(call, unset, unset, window.comm);
  return conclude(story, rma::complete(process().waiter(), window));
}

int win_post(const char* call, MPI_Group group, int assertion, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  constexpr int known = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT;
  if (const int code = check_assert(story, assertion, known)) return code;
  base::Vec<int> ranks;
  if (const int code = take_ranks(story, group, ranks)) return code;
  Window& window = window_of(story);
  if (window.is_exposed) {
    return raise_sync(story, "the window's memory is exposed already",
                      "call MPI_Win_wait, or MPI_Win_test until it says so, before");
  }
  return conclude(
      story, rma::post(process().waiter(), window, ranks, (assertion & MPI_MODE_NOCHECK) == 0));
}

int take_exposed(Story& story, MPI_Win win) {
  if (const int code = take_window(story, win)) return code;
  if (window_of(story).is_exposed) return MPI_SUCCESS;
  return raise_sync(story, "the window's memory is not exposed", "call MPI_Win_post before");
}

int win_wait(const char* call, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_exposed(story, win)) return code;
  const Inside inside(call, unset, unset, story.window->comm);
  (void)rma::wait(process().waiter(), window_of(story), true);
  return MPI_SUCCESS;
}

int win_test(const char* call, MPI_Win win, int* flag) {
  Story story{.call = call};
  if (const int code = take_exposed(story, win)) return code;
  const bool is_over = rma::wait(process().waiter(), window_of(story), false);
  if (!is_over) note_poll(call, unset, unset);
  *flag = is_over;
  return MPI_SUCCESS;
}

// What all kinds of locks refuse.
int check_lockable(const Story& story) {
  const Window& window = window_of(story);
  if (window.hints.no_locks) {
    return raise_sync(story, "the window was made with the hint no_locks",
                      "leave the hint out where the window is locked");
  }
  return MPI_SUCCESS;
}

int win_lock(const char* call, int lock_type, int rank, int assertion, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  if (const int code = check_target(story, rank)) return code;
  if (lock_type != MPI_LOCK_SHARED && lock_type != MPI_LOCK_EXCLUSIVE) {
    return raise(story, MPI_ERR_LOCKTYPE, "there is no such type of locks",
                 "pass MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE");
  }
  if (const int code = check_assert(story, assertion, MPI_MODE_NOCHECK)) return code;
  if (const int code = check_lockable(story)) return code;
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  Window& window = window_of(story);
  const bool others = window.epoch == Epoch::start || window.epoch == Epoch::lock_all ||
                      (window.epoch == Epoch::fence && window.is_fence_used());
  if (others) return raise_sync(story, still_open, end_it);
  if (window.target(rank).hold != Hold::none) {
    return raise_sync(story, "this rank has locked that target already",
                      "unlock it first: locks of one target do not nest");
  }
  const Hold hold = assertion & MPI_MODE_NOCHECK   ? Hold::unchecked
                    : lock_type == MPI_LOCK_SHARED ? Hold::shared
                                                   : Hold::exclusive;
  const Inside inside(call, rank, unset, window.comm);
  return conclude(story, rma::lock(process().waiter(), window, rank, hold));
}

int win_unlock(const char* call, int rank, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  if (const int code = check_target(story, rank)) return code;
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  Window& window = window_of(story);
  if (window.epoch == Epoch::lock_all || window.target(rank).hold == Hold::none) {
    return raise_sync(story, "this rank has not locked that target",
                      "call MPI_Win_lock on it before, once for each MPI_Win_unlock");
  }
  const Inside inside(call, rank, unset, window.comm);
  return conclude(story, rma::unlock(process().waiter(), window, rank));
}

int win_lock_all(const char* call, int assertion, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  if (const int code = check_assert(story, assertion, MPI_MODE_NOCHECK)) return code;
  if (const int code = check_lockable(story)) return code;
  Window& window = window_of(story);
  if (window.has_access_epoch()) return raise_sync(story, still_open, end_it);
  const Inside inside(call, unset, unset, window.comm);
  return conclude(story,
                  rma::lock_all(process().waiter(), window, (assertion & MPI_MODE_NOCHECK) != 0));
}

int win_unlock_all(const char* call, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  Window& window = window_of(story);
  if (window.epoch != Epoch::lock_all) {
    return raise_sync(story, "no epoch is open that MPI_Win_lock_all has begun",
                      "call MPI_Win_lock_all before");
  }
  const Inside inside(call, unset, unset, window.comm);
  return conclude(story, rma::unlock_all(process().waiter(), window));
}

// A flush of one target, or of all.
template <Outcome (*flush)(waiting::Waiter&, Window&, int)>
int flush_one(const char* call, int rank, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  if (const int code = check_target(story, rank)) return code;
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  Window& window = window_of(story);
  if (!window.is_passive(rank)) {
    return raise_sync(story, "no epoch of locks is open for that target",
                      "call MPI_Win_lock on it, or MPI_Win_lock_all, before");
  }
  const Inside inside(call, rank, unset, window.comm);
  return conclude(story, flush(process().waiter(), window, rank));
}

template <Outcome (*flush)(waiting::Waiter&, Window&, int)>
int flush_all(const char* call, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  Window& window = window_of(story);
  if (window.epoch != Epoch::lock_all && window.locked == 0) {
    return raise_sync(story, "no epoch of locks is open",
                      "call MPI_Win_lock or MPI_Win_lock_all before");
  }
  const Inside inside(call, unset, unset, window.comm);
  return conclude(story, flush(process().waiter(), window, rma::all_ranks));
}

// Stores of this process and those of others are one memory: all that is to be done is to keep the
// processor, and the compiler, from moving any of them over this place.
int win_sync(const char* call, MPI_Win win) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/windows_sync.inl"
