// The channel of one output stream of a rank: a pipe, or a terminal of its own where mpiexec writes
// to a terminal (a program holds its printf back before a pipe). Thread: none. Owns nothing.
#pragma once

namespace headway::launcher {

struct Channel {
  int ours = -1;    // to read from; non-blocking
  int theirs = -1;  // for the rank
};

// `like_terminal`: a terminal of ours that it shall resemble, or -1 for a pipe. {-1, -1} and errno
// on failure.
Channel make_channel(int like_terminal);

// Gives a rank's terminal the size of ours.
void copy_window_size(int terminal, int rank_terminal);

}  // namespace headway::launcher
