// Layout: how many ranks each machine takes, so that every engine places them alike: in order,
// neighbours together, as evenly as the user lets it. Thread: none.
#pragma once
#include <string>
#include <vector>

#include "plan.h"

namespace headway::launcher {

struct Layout {
  int ranks = 0;
  int machines = 1;         // that get ranks
  std::vector<Host> hosts;  // these, each with its slots; empty: the engine knows them
  int most = 0;             // ranks that the user lets each machine take; 0: nobody said
  bool unequal = false;     // the user said another number for some machine than for others
  std::string refusal;
};

Layout lay_out(const Plan& plan);

}  // namespace headway::launcher
