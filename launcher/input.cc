#include "input.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace headway::launcher {

int Input::start(bool eager) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  pipe_ = ends[1];
  eager_ = eager;
  return ends[0];
}

bool Input::wants_terminal(int64_t now_ms) const {
  return active() && !typed_end_ && pending_.empty() && now_ms >= look_again_at_ &&
         tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void Input::read_terminal(pid_t rank, int64_t now_ms) {
  // What else was ready with the terminal may have ended the rank's input: the line is the shell's.
  if (!wants_terminal(now_ms)) return;
  if (!eager_ && !readers_.want_input(pipe_, rank, now_ms)) {
    look_again_at_ = now_ms + delay_ms_;
    delay_ms_ = std::min(2 * delay_ms_, longest_delay_ms);
    return;
  }
  look_again_at_ = -1;
  delay_ms_ = first_delay_ms;
  // A terminal gives one line, or what is there if it does not gather lines.
  char buffer[4096];
  const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
  if (got > 0) {
    pending_.append(buffer, static_cast<size_t>(got));
  } else if (got == 0) {
    typed_end_ = true;
  } else if (errno != EINTR && errno != EAGAIN && errno != EIO) {
    typed_end_ = true;  // EIO: we went to the background in this moment
  }
  write_pipe();
}

void Input::write_pipe() {
  while (!pending_.empty()) {
    const ssize_t written = write(pipe_, pending_.data(), pending_.size());
    if (written > 0) {
      pending_.erase(0, static_cast<size_t>(written));
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    return stop();  // the rank has closed its stdin
  }
  if (typed_end_) stop();
}

void Input::stop() {
  if (pipe_ >= 0) close(pipe_);
  pipe_ = -1;
  pending_.clear();
}

}  // namespace headway::launcher
