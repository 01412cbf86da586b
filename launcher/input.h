// Input: what is typed at our terminal, on its way to the rank that gets stdin. (A file or a pipe
// is simply given to that rank.) Thread: the launcher's only one. Invariants: never reads while
// mpiexec is in the background, which would stop it; takes a line only when the rank waits for
// input, so that what is typed ahead and never asked for is there for the shell afterwards.
#pragma once
#include <cstdint>
#include <string>
#include <sys/types.h>

#include "pipe_readers.h"

namespace headway::launcher {

class Input {
 public:
  Input() = default;
  ~Input() { stop(); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Makes the pipe; returns the end for the rank, which the caller closes, or -1. `eager`: lines
  // are taken whether the rank waits for them or not.
  int start(bool eager);
  bool active() const { return pipe_ >= 0; }
  // True while typing can be taken: the terminal is ours, the rank keeps up, and it was not just
  // found to wait for something else.
  bool wants_terminal(int64_t now_ms) const;
  // When to look again whether the rank waits for input.
  int64_t look_again_at() const { return look_again_at_; }
  bool wants_pipe() const { return active() && !pending_.empty(); }
  int pipe() const { return pipe_; }
  // The terminal has something: takes a line of it if process `rank` waits for one.
  void read_terminal(pid_t rank, int64_t now_ms);
  void write_pipe();
  void stop();

 private:
  int pipe_ = -1;
  bool typed_end_ = false;  // Ctrl-D
  std::string pending_;
  bool eager_ = false;
  PipeReaders readers_;
  // While a line waits that nobody asks for: looking costs little, but not nothing.
  static constexpr int64_t first_delay_ms = 1;
  static constexpr int64_t longest_delay_ms = 200;
  int64_t look_again_at_ = -1;
  int64_t delay_ms_ = first_delay_ms;
};

}  // namespace headway::launcher
