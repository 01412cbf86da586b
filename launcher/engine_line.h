// The line of an engine: what mpiexec executes in the place of ranks of its own, made of the plan
// by the table of engine_options.h. Thread: none. Invariant: nothing is executed or written here,
// so that --dry-run can show all of it.
#pragma once
#include <string>
#include <vector>

#include "engine.h"
#include "plan.h"

namespace headway::launcher {

struct EngineLine {
  std::vector<std::string> words;
  std::vector<Assignment> environment;  // of the engine itself, which passes it on
  std::vector<std::string> dropped;     // variables of here that the engine is not to see
  std::string file;                     // what a file that it reads holds
  size_t file_at = 0;                   // the word that is to name it; 0: there is none
  bool no_input = false;                // its stdin is /dev/null
  bool merged = false;                  // its stderr is its stdout
  std::string refusal;                  // why there is no line
};

// `programs` has the word for the program of each section; `library_folder` may be "".
EngineLine make_line(const Plan& plan, const Engine& engine,
                     const std::vector<std::string>& programs, const std::string& library_folder);

// As a shell takes it; the ranks' file stands behind it, in comments.
std::string as_shell_text(const EngineLine& line);

}  // namespace headway::launcher
