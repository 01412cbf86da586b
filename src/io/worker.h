// Worker: a thread that waits for disks, so that nobody else has to: neither the message thread nor
// a rank that computes. It starts with the first access that needs it. Thread: jobs are given by
// the holder of the engine, and run without it; what follows a job runs with the engine held, which
// the worker takes for it as a thread of the program does in a call. Owner: one a process, made
// when it is needed. Invariants: jobs run one after the other in the order in which they were
// given; all signals are blocked in it, so that no handler of the program runs there; it allocates
// nothing itself.
#pragma once
#include <cstdint>

#include "progress/user_calls.h"

namespace headway::protocols {
class Engine;
}

namespace headway::io {

// Who does it: the worker, or whoever waits inside MPI (for a call that waits anyway, which spares
// the way to another thread and back).
enum class By : uint8_t { worker, waiting };

// Starts the worker if it is not there. Without the engine: making a thread takes the program's
// heap, whose lock somebody may have who waits for the engine.
void prepare_worker(protocols::Engine& engine);
// Engine held. The job lives until its `finished` has been called.
void give_job(protocols::Engine& engine, progress::UserCall& job, By by);

}  // namespace headway::io
