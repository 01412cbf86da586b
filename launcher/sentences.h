// Sentences: how ranks and calls are named in what mpiexec says of a job. Thread: the launcher's
// only one. Owner: none. Invariant: none.
#pragma once
#include <string>
#include <vector>

#include "whereabouts.h"

namespace headway::launcher {

inline constexpr size_t most_groups = 8;

bool sends(const Spot& spot);
bool receives(const Spot& spot);
bool finalizes(const Spot& spot);
// A call that needs the one rank that it waits for.
bool is_point_to_point(const Spot& spot);
bool is_collective(const Spot& spot);
// Without the _c of large counts.
std::string plain_name(const std::string& call);

// "0", "0-3 and 7".
std::string numbers(const std::vector<int>& ranks);
// "rank 0", "ranks 0-3".
std::string rank_list(const std::vector<int>& ranks);
std::string list_of(const std::vector<std::string>& parts);
// "MPI_Recv (source 1, tag 3)".
std::string name_of(const Spot& spot);
std::string name_of_poll(const Spot& spot);
std::string name_of(const SeenComm& comm);

}  // namespace headway::launcher
