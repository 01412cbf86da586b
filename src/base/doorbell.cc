#include "base/doorbell.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/text.h"

namespace headway::base {

Outcome Doorbell::create() {
  if (pipe2(fds_, O_CLOEXEC | O_NONBLOCK) != 0) return Outcome::no_resource;
  return Outcome::ok;
}

bool Doorbell::drain() const {
  char rings[64];
  for (bool any = false;;) {
    const ssize_t n = read(fds_[0], rings, sizeof rings);
    any |= n > 0;
    if (n < ssize_t(sizeof rings)) return any;
  }
}

void Doorbell::close() {
  for (int& fd : fds_) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
}

int Doorbell::open_of(int pid, int fd) {
  Text<64> path;
  path << "/proc/" << pid << "/fd/" << fd;
  // Readable, too: with no reader left, a ring for a process that just died would be a SIGPIPE
  // here.
  return open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

void Doorbell::ring_fd(int fd) {
  // A full pipe means that the sleeper has been rung already; nothing is lost.
  const char ring = 1;
  [[maybe_unused]] const ssize_t n = write(fd, &ring, 1);
}

}  // namespace headway::base
