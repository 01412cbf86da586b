// Engines: the launchers of others that start ranks on several machines, and move none of their
// messages. Thread: none. Owns nothing. Invariant: what is found is a file that can be executed and
// is what its name says: a launcher called mpiexec is never taken for Hydra unless it says so.
#pragma once
#include <string>

#include "plan.h"

namespace headway::launcher {

enum class EngineKind : unsigned char { srun, flux, hydra, prterun };
inline constexpr size_t engine_kinds = 4;

// "srun", "flux run", "Hydra", "prterun".
const char* name_of(EngineKind kind);

struct Engine {
  EngineKind kind = EngineKind::hydra;
  std::string path;         // what to execute
  std::string explanation;  // if there is none: why, and what to do
};

// The engine for a job that belongs elsewhere: HEADWAY_ENGINE names one; else it is that which
// gave the machines, else the first that is installed.
Engine choose_engine(const Place& place);

}  // namespace headway::launcher
