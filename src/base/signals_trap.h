// The signal of trapped system calls (SIGSYS): taking it, and keeping it deliverable. A trapped
// call while it is blocked kills the process. Thread: any, one at a time; chain_trap_signal() is
// SIGSAFE. Owner: guard's dispatch. Invariant: the program's own handler of SIGSYS gets whatever is
// not a trapped call; other handlers keep everything but SIGSYS in their masks.
#pragma once
#include <csignal>
#include <cstdint>

namespace headway::base {

using TrapHandler = void (*)(int, siginfo_t*, void*);

constexpr uint64_t signal_bit(int number) { return uint64_t(1) << (number - 1); }
// What a thread does to itself: blocked, these would kill.
inline constexpr uint64_t own_faults = signal_bit(SIGSEGV) | signal_bit(SIGBUS) |
                                       signal_bit(SIGFPE) | signal_bit(SIGILL) |
                                       signal_bit(SIGTRAP);

// Handlers of these do not come from outside, or are the C library's (32 and 33).
inline constexpr uint64_t not_programs = own_faults | signal_bit(32) | signal_bit(33);

// The kernel's view of a handler (the C library's has room for more signals).
struct KernelAction {
  uintptr_t handler;
  uint64_t flags;
  uintptr_t restorer;
  uint64_t mask;
};

// `restorer` makes the system call that returns from the handler, which must not be trapped itself.
bool take_trap_signal(TrapHandler handler, void (*restorer)());
// Nothing, if the program has put another handler in place of ours.
void give_back_trap_signal(TrapHandler handler);
// Hands a signal to the handler that the program had before.
void chain_trap_signal(int number, siginfo_t* info, void* context);
// Takes SIGSYS out of this thread's mask, and `unblockable` (it, and others) out of the masks that
// the program's handlers run with. `caught`: the signals that have handlers; `programs`: those of
// the program that others may send. False: SIGSYS is not ours any more, or this thread blocks one
// of the others.
bool keep_trap_signal(TrapHandler handler, uint64_t unblockable, uint64_t& caught,
                      uint64_t& programs);

}  // namespace headway::base
