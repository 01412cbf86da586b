#include "base/doorbell.h"

#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/text.h"

namespace headway::base {
namespace {

// An abstract name: a zero in front, no file behind it. Returns the length that goes with it.
socklen_t abstract(const char* name, sockaddr_un& out) {
  out = {};
  out.sun_family = AF_UNIX;
  const size_t most = sizeof out.sun_path - 1, n = strlen(name);
  memcpy(out.sun_path + 1, name, n < most ? n : most);
  return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + (n < most ? n : most));
}

}  // namespace

Outcome Doorbell::create() {
  const int made = with_room([this] { return pipe2(fds_, O_CLOEXEC | O_NONBLOCK); });
  return made == 0 ? Outcome::ok : Outcome::no_resource;
}

bool Doorbell::listen(const char* name) {
  socket_ = with_room([] { return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  if (socket_ < 0) return false;
  sockaddr_un self;
  const socklen_t length = abstract(name, self);
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&self), length) == 0) return true;
  ::close(socket_);
  socket_ = -1;
  return false;
}

bool Doorbell::drain() const {
  char rings[64];
  bool any = false;
  for (ssize_t n = sizeof rings; n == ssize_t(sizeof rings);) {
    n = read(fds_[0], rings, sizeof rings);
    any |= n > 0;
  }
  if (any || socket_ < 0) return any;
  while (recv(socket_, rings, sizeof rings, MSG_DONTWAIT) >= 0) any = true;
  return any;
}

void Doorbell::close() {
  for (int& fd : fds_) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

int Doorbell::open_of(int pid, int fd) {
  Text<64> path;
  path << "/proc/" << pid << "/fd/" << fd;
  // Readable, too: with no reader left, a ring for a process that just died would be a SIGPIPE
  // here.
  return with_room([&] { return open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC); });
}

void Doorbell::ring_fd(int fd) {
  // A full pipe means that the sleeper has been rung already; nothing is lost.
  const char ring = 1;
  [[maybe_unused]] const ssize_t n = write(fd, &ring, 1);
}

void Doorbell::call(int fd, const char* name) {
  sockaddr_un to;
  const socklen_t length = abstract(name, to);
  // A full queue means that the sleeper has been called already; a name that is gone, that it died.
  const char ring = 1;
  [[maybe_unused]] const ssize_t n = sendto(fd, &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL,
                                            reinterpret_cast<const sockaddr*>(&to), length);
}

}  // namespace headway::base
