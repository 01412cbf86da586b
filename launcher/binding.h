// Binding: which cores each rank may use, and how many threads. Thread: none. Invariants: never
// fewer cores than ranks (else nobody is bound), and a quota of processor time counts as cores; an
// inherited mask is never left; a rank without its own wish for one core gets an equal share, so
// that its threads find room; two jobs that run at once never get the same core.
#pragma once
#include <string>
#include <vector>

#include "plan.h"

namespace headway::launcher {

struct Binding {
  std::vector<std::vector<unsigned char>> cores;  // a cpu_set_t for each rank; empty: not bound
  std::string note;                               // why nobody is bound, if somebody asked
  std::string picture;                            // lines for --show-binding
  size_t descriptors = 0;                         // kept open for the reservations of the cores
  int threads = 0;  // OMP_NUM_THREADS of a rank whose mask is not its share; 0: nothing to say
};

// `want_picture` costs some milliseconds, as does binding; without both nothing is looked up.
Binding plan_binding(Bind wish, int ranks, bool want_picture);

}  // namespace headway::launcher
