// Signals: the only place that installs handlers. Thread: any. Owner: the process. Invariant: a
// handler of the program is never replaced; where we stand before it, it gets all that is not ours.
#pragma once
#include <cstdint>

namespace headway::base {

// SIGUSR1 calls `dump` unless the program has a handler of its own. SIGSAFE: dump only reads.
void on_dump_signal(void (*dump)(int));
bool is_dump_handler(const void* handler);
// `before` is called by a thread that is about to fork, `child` in every forked child. Once for the
// life of the process.
void on_fork(void (*before)(), void (*child)());

// A touch of memory that is mapped but not accessible asks `handler` first, and the other of the
// two that there may be: true means that the access may be tried again. `mask`: the signals that
// the program blocks there; while it is asked, all but a thread's own faults are blocked. All else
// goes to the handler that was there before. SIGSAFE. False: the system forbids it, or there are
// two.
using AccessHandler = bool (*)(const void* address, uint64_t mask);
bool on_access_fault(AccessHandler handler);
// False once the program has put a handler of its own over ours.
bool sees_access_faults();
// With the last one goes ours, if it is still there, for the former.
void leave_access_faults(AccessHandler handler);

}  // namespace headway::base
