// Call site: where in the program this thread's MPI call stands: set by the entries of api/ in
// which a rank may wait, read by whoever learns from it, and told to the launcher of waits that
// last. Where a PMPI tool stands between the program and this library, the address behind our
// entry's call lies in the tool, the same for all calls of the program: then the place is the one
// that the tool hands on (headway_call_sites_from), or else the first frame outside of the objects
// that define MPI's names. Thread: its own; find_wrappers() at the start of MPI. Owner: the thread.
// Invariants: only compared and told, never followed; without a tool nothing looks at the stack.
#pragma once
#include <atomic>
#include <cstdint>

namespace headway::base {

// As the entry found it: of this library's caller.
extern constinit thread_local uintptr_t call_site;

extern constinit std::atomic<bool> has_wrappers;
// The program's own place behind that one; call_site itself where none is found. Walks over the
// stack, some microseconds, and takes no memory.
[[gnu::cold, gnu::noinline]] uintptr_t walk_to_caller();

// Inside an MPI call, on the thread that made it.
inline uintptr_t outer_call_site() {
  if (has_wrappers.load(std::memory_order_relaxed)) [[unlikely]]
    return walk_to_caller();
  return call_site;
}

// Which objects stand between the program and this library. Takes memory where there are any.
void find_wrappers();

}  // namespace headway::base

// For a tool that knows the place of its caller and keeps it: `site` is asked on the thread that is
// in the tool's wrapper, and answers 0 where it does not know. It lies in the tool's own shared
// object, with the wrappers. Null: the tool hands nothing on any more.
extern "C" __attribute__((visibility("default"))) void headway_call_sites_from(uintptr_t (*site)());
