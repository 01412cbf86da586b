// What an executable file tells of the MPI in it, before it is started. Thread: any. Owner: nobody,
// it is functions. Invariant: nothing of the file is believed: whatever stands in it, nothing
// beyond its end is read, and a file that cannot be understood has nothing to say.
#pragma once

#include <string>
#include <vector>

namespace headway::record {

struct Executable {
  bool is_static = false;  // it has no interpreter, so nothing can be preloaded
  bool has_mpi = false;    // an MPI library was linked into it
  // Calls of MPI that it answers itself although it has no MPI: wrappers of a profiling library.
  std::vector<std::string> wrapped;
};

Executable look_at(const std::string& path);

// Why nothing of it would be recorded, or "". `warning`: what would be missing.
std::string why_unrecorded(const std::string& path, const Executable& found, std::string& warning);

}  // namespace headway::record
