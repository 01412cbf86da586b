// Signals: the only place that installs handlers. Thread: any. Owner: the process. Invariant: a
// handler of the program is never replaced.
#pragma once

namespace headway::base {

// SIGUSR1 calls `dump` unless the program has a handler of its own. SIGSAFE: dump only reads.
void on_dump_signal(void (*dump)(int));
// Called in every forked child. Once for the life of the process.
void on_fork_in_child(void (*child)());

}  // namespace headway::base
