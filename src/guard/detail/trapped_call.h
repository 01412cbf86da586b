// Trapped calls: what happens to a system call that was trapped. Thread: the one that made it, in
// the handler of SIGSYS. Owner: guard's dispatch. Invariant: SIGSAFE; the call is made by the gate,
// by the original instruction, or answered here, never twice; errno and all registers stay.
#pragma once
#include <atomic>
#include <cstdint>

#include "guard/dispatch.h"

namespace headway::guard {

// One a process: a signal handler has no other way to find it.
struct TrapState {
  std::atomic<Pages*> pages{nullptr};
  // Since the last look at them: signals that have handlers, and those whose handlers are the
  // program's and may come inside MPI, where they change what they like.
  std::atomic<uint64_t> caught{0}, programs{0};
  std::atomic<uint32_t> armings{0};
  // SIGSEGV, where a touch of a closed page is one: not to be blocked while pages are closed.
  std::atomic<uint64_t> touches{0};
  std::atomic<bool> settled{false};  // a thread ran free: handlers may have changed
  std::atomic<bool> broken{false};   // a call came while the trap lingered
  TrapCounters counters;
};
extern TrapState trap_state;

#if defined(__x86_64__)
Outcome start_trap();
void stop_trap();
// The kernel reads this thread's selector at each call outside the gate.
bool enroll_in_kernel();
void leave_kernel();
// SIGSYS is ours, unblocked here and in all handlers; and so is what a touch is, but for this
// thread, where the program may want it: false.
bool keep_trap(bool enrolled);
#endif

}  // namespace headway::guard
