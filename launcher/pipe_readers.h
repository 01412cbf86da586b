// PipeReaders: whether somebody wants input from a pipe of ours, so that what is typed at the
// terminal is taken only when it is asked for. Thread: the launcher's only one. Invariants: nothing
// is sent to the processes that are looked at; where the system does not tell, the answer is yes,
// since a rank that never gets its input is worse than a shell that misses a line.
#pragma once
#include <cstdint>
#include <sys/types.h>

namespace headway::launcher {

class PipeReaders {
 public:
  // True if the pipe with our end `pipe` is empty, and the process `rank`, one that came of it, or
  // another one with that stdin waits for it.
  bool want_input(int pipe, pid_t rank, int64_t now_ms);

 private:
  // Looking at all processes takes milliseconds on a full machine. Those that came of the rank are
  // found faster; only one whose parent has ended is not among them.
  static constexpr int64_t wide_look_ms = 2000;
  int64_t wide_look_at_ = 0;
};

}  // namespace headway::launcher
