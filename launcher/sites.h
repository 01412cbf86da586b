// Sites: in which file of the program, at which offset and in which line, the calls stand that
// ranks wait in. Files and offsets come from /proc, for each rank by itself, since each has its own
// addresses; lines from a program that reads debug information, where one is installed, and only
// when they are to be printed: it is waited for, a moment. Thread: the launcher's only one. Owns
// nothing. Invariant: what cannot be told is left empty; no reader of lines takes longer than its
// time.
#pragma once
#include <vector>

#include "whereabouts.h"

namespace headway::launcher {

inline constexpr int patience_for_lines_ms = 1500;

// Files and offsets.
void find_sites(std::vector<Seen>& ranks);
// The same, and lines, as far as they are told within so many ms.
void name_sites(std::vector<Seen>& ranks, int patience_ms);

// "ring.c:14", "main (ring+0x11a9)", "ring+0x11a9"; "": not known.
std::string text_of(const Site& site);

}  // namespace headway::launcher
