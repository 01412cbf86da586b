// What the ranks of an engine are to have in their environment, sorted by how engines can be told.
// Thread: none. Invariant: as on one machine: what is for all programs, then what is for one, then
// the folder of our library in LD_LIBRARY_PATH; what is unset wins over both.
#pragma once
#include <string>
#include <vector>

#include "plan.h"

namespace headway::launcher {

struct EngineEnvironment {
  std::vector<Assignment> common;            // the same for all programs
  std::vector<std::vector<Assignment>> own;  // of each program
  std::vector<std::string> unset;
  bool library_path_given = false;  // by the user, who may have it from anywhere
  // What an engine that passes on nothing by itself is to pass on of here.
  std::vector<std::string> forwarded;
};

EngineEnvironment environment_for(const Plan& plan, const std::string& library_folder);

}  // namespace headway::launcher
