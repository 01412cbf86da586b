// Call: what every entry does before and after its work: is MPI running, which objects do the
// handles mean, which handler hears of an error. Thread: any. Owns nothing. Invariant: an entry
// that returns an error has told its communicator's handler exactly once.
#pragma once
#include <cstdint>

#include "api/detail/entry.h"
#include "base/call_site.h"
#include "base/outcome.h"
#include "base/text.h"
#include "base/tool_events.h"
#include "objects/comm.h"
#include "runtime/process.h"

namespace headway::io {
struct File;
}

namespace headway::api {

inline constexpr int unset = base::nobody;

// The story of a call, told when it fails.
struct Story {
  const char* call;
  objects::Comm* comm = nullptr;
  objects::Session* session = nullptr;  // of a call on a session
  objects::Window* window = nullptr;    // of a call on a window
  io::File* file = nullptr;             // of a call on a file
  // That the call was given for what it makes: hears of this call's errors, too.
  objects::Errhandler* handler = nullptr;
  int peer = unset;
  int tag = unset;
  int64_t count = INT64_MIN;
  const datatypes::Type* type = nullptr;
  bool receives = false;
  // Of a collective that has one. All that is zero at first is cleared in one.
  bool has_root = false;
  int root = 0;
  int root_or_unset() const { return has_root ? root : unset; }
};

template <class Handle>
uintptr_t value_of(Handle handle) {
  return reinterpret_cast<uintptr_t>(handle);
}
template <class Handle>
Handle handle_of(uintptr_t value) {
  return reinterpret_cast<Handle>(value);
}

// Tells the error to the handler of the story's communicator (or the one for calls without a
// communicator) and returns `code` if the handler does. `why`: what is wrong; `remedy`: what to do,
// `cause`: how it came about; null: what is usual for this class.
[[gnu::cold, gnu::noinline]] int raise(const Story& story, int code, const char* why,
                                       const char* remedy = nullptr, const char* cause = nullptr);
// The same for an Outcome that the engine gave.
[[gnu::cold, gnu::noinline]] int raise(const Story& story, Outcome outcome);
int error_class_of(Outcome outcome);

// MPI_SUCCESS if MPI is running, else stops the program with one sentence.
[[gnu::cold, gnu::noinline]] int not_running(const char* call);
// MPI could not start: stops the program with the process's story.
[[noreturn, gnu::cold]] void cannot_start(const char* call);
inline runtime::Process& process() { return runtime::process(); }

// Hands events to the callbacks of tools (tools_events.cc), which may call MPI as long as it runs:
// no lock is held, and the call around it has not begun, or has ended but for its answer.
[[gnu::cold, gnu::noinline]] void deliver_events();

// True if MPI is running, for calls that start nothing, ask nobody, and touch no memory of the
// program while they hold the engine.
inline bool is_still_running() {
  if (!process().is_running()) [[unlikely]]
    return false;
  if (base::any_events()) [[unlikely]]
    deliver_events();
  return true;
}
// What has to be before a call that may begin something. Hands over events, and waits until all
// released receives are matched and no page with other data of the program is closed: it must not
// be seen before (early-release paper, section 2.5).
[[gnu::cold, gnu::noinline]] void before_call();
// Waits until no page of [from, from + n) is closed; until none at all is. For what a call touches
// without the engine it would do to touch it; with the engine held waiting::Waiter::open is needed.
void await_open(const void* from, size_t n);
void await_all_open();
// True if MPI is running, for all other calls.
inline bool is_running() {
  if (!process().is_running()) [[unlikely]]
    return false;
  if (process().any_closed() || base::any_events()) [[unlikely]]
    before_call();
  return true;
}
// Errors on it end the job, so that a receive may return before it could report one.
inline bool errors_abort(const objects::Comm* comm) {
  return comm && (!comm->errhandler || comm->errhandler->kind == objects::ErrhandlerKind::fatal ||
                  comm->errhandler->kind == objects::ErrhandlerKind::abort);
}
inline objects::Registry& registry() { return runtime::process().registry; }

// Where in the program this call stands, for what early release learns there and for the launcher.
// Stands in the entries themselves, of all calls that are Inside.
[[gnu::always_inline]] inline void note_site() {
  base::call_site = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
}

// Notes for the state dump and the launcher which call this rank is in.
class Inside {
 public:
  Inside(const char* call, int peer, int tag, const objects::Comm* comm) {
    base::Whereabouts& where = process().whereabouts;
    // Each after what stands before it: pairs with the launcher's readings (base/whereabouts.h).
    where.peer.store(peer, std::memory_order_release);
    where.tag.store(tag, std::memory_order_release);
    where.comm.store(comm, std::memory_order_release);
    where.call.store(call, std::memory_order_release);
  }
  // A call on no communicator, or on several.
  explicit Inside(const char* call) : Inside(call, unset, unset, nullptr) {}
  ~Inside() {
    process().whereabouts.call.store(nullptr, std::memory_order_release);
    if (base::any_events()) [[unlikely]]
      deliver_events();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// Notes that a call which does not wait has found nothing.
inline void note_poll(const char* call, int peer, int tag) {
  base::Whereabouts& where = process().whereabouts;
  where.poll_peer.store(peer, std::memory_order_relaxed);
  where.poll_tag.store(tag, std::memory_order_relaxed);
  where.poll.store(call, std::memory_order_relaxed);
  base::count(where.polls);
}

[[gnu::cold, gnu::noinline]] int raise_no_comm(const Story& story, MPI_Comm handle);

// Finds the communicator of a handle; on failure raises MPI_ERR_COMM and returns its code.
inline int take_comm(Story& story, MPI_Comm handle) {
  if (!is_running()) [[unlikely]]
    return not_running(story.call);
  story.comm = registry().find_comm(value_of(handle));
  if (!story.comm) [[unlikely]] {
    return raise_no_comm(story, handle);
  }
  return MPI_SUCCESS;
}

[[gnu::cold, gnu::noinline]] int raise_inter(const Story& story);

// The same for a call that there is not on inter-communicators.
inline int take_intra(Story& story, MPI_Comm handle) {
  if (const int code = take_comm(story, handle)) return code;
  return story.comm->is_inter() ? raise_inter(story) : MPI_SUCCESS;
}

}  // namespace headway::api
