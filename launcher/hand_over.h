// Hands a job that belongs on other machines over to an engine. Thread: the launcher's only one.
// Invariant: mpiexec becomes the engine, so that nothing stands between it and the user; it stays
// beside it as its parent only for what the engine does not do: the time limit, and the true exit
// code under srun. Then it ends with it, and the engine is told to end if mpiexec is killed.
#pragma once
#include "engine.h"
#include "engine_line.h"
#include "plan.h"

namespace headway::launcher {

// All of it; the exit code, if mpiexec is still there.
int hand_over(const Plan& plan);

// engine_run.cc: executes a line; comes back if it cannot, or if mpiexec has stayed.
int run_engine(const Plan& plan, const Engine& engine, EngineLine& line);

}  // namespace headway::launcher
