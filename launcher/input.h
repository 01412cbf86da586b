// Input: what is typed at our terminal, on its way to the rank that gets stdin. (A file or a pipe
// is simply given to that rank.) Thread: the launcher's only one. Invariant: never reads while
// mpiexec is in the background, which would stop it.
#pragma once
#include <string>

namespace headway::launcher {

class Input {
 public:
  Input() = default;
  ~Input() { stop(); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Makes the pipe; returns the end for the rank, which the caller closes, or -1.
  int start();
  bool active() const { return pipe_ >= 0; }
  // True while typing can be taken: the terminal is ours and the rank keeps up.
  bool wants_terminal() const;
  bool wants_pipe() const { return active() && !pending_.empty(); }
  int pipe() const { return pipe_; }
  void read_terminal();
  void write_pipe();
  void stop();

 private:
  int pipe_ = -1;
  bool typed_end_ = false;  // Ctrl-D
  std::string pending_;
};

}  // namespace headway::launcher
