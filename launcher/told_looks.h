// Told looks: what another program has seen of the ranks of a job, in two looks: `headway where` of
// a recording (tools/headway/headway/record/looks.py), where ranks of any MPI tell in their own
// pages what they do. Lines of words; a number stands for a text or a set of ranks that was told
// before:
//
//   headway-looks 1
//   ranks COUNT
//   seconds BETWEEN
//   text NUMBER REST-OF-THE-LINE
//   set NUMBER 0-3,7
//   comm NUMBER SET TEXT                 a communicator, its ranks and its name
//   before RANK NAME=VALUE ...           in the first look
//   rank RANK NAME=VALUE ...             in the second one
//
// Names: kind (before, computing, in_call, left, ended; unknown without), pid, call, peer, tag,
// awaited, comm, has (COMM:COLLECTIVES,...), waits, vain, asleep, cpu, state, threads, polls, poll,
// signs (N,N), done, module (text), offset, line (text), on (text); and what it needs, `needs`:
// open, or all:SET and any:SET, as many as there are, with commas. Thread: one. Owns nothing.
// Invariant: what is not understood is an error, not a guess.
#pragma once
#include <istream>
#include <string>
#include <vector>

#include "whereabouts.h"

namespace headway::launcher {

struct ToldLooks {
  std::vector<Seen> before, after;
  double seconds = 0;
};

// "": understood; else what was not.
std::string read_looks(std::istream& from, ToldLooks& looks);

}  // namespace headway::launcher
