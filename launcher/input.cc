#include "input.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace headway::launcher {

int Input::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  pipe_ = ends[1];
  return ends[0];
}

bool Input::wants_terminal() const {
  constexpr size_t enough = 64 * 1024;
  return active() && !typed_end_ && pending_.size() < enough &&
         tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void Input::read_terminal() {
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
