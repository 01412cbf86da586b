// The programs that the ranks execute: where they are, and what their file says about the MPI
// library that they will load. Thread: none. Nothing here executes them.
#pragma once
#include <string>
#include <vector>

#include "plan.h"

namespace headway::launcher {

struct Program {
  std::string path;         // what to execute
  int exit_code = 0;        // 126 or 127 if it cannot be executed
  std::string explanation;  // then: why, for the user
};

// Finds the program of a section as its ranks will see it.
Program find_program(const Section& section);

// The folder with the library that belongs to this mpiexec.
std::string library_folder();

// "" or a warning: the program's own file brings in another MPI library than ours.
std::string library_warning(const std::string& program, const std::string& our_folder);

}  // namespace headway::launcher
