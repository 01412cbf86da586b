#include "inquiries.h"

#include <cstddef>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "say.h"

namespace headway::launcher {
namespace {

constexpr int most_waiting = 8;

// The kernel tells who is at the other end.
bool may_know(int asker) {
  ucred who = {};
  socklen_t length = sizeof who;
  if (getsockopt(asker, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) return false;
  return who.uid == geteuid() || who.uid == 0;
}

}  // namespace

void Inquiries::begin() {
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return;
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string text = format("headway-mpiexec-%d", getpid());
  memcpy(name.sun_path + 1, text.data(),
         text.size());  // a name of the abstract space begins with 0
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&name), length) != 0 ||
      listen(fd_, most_waiting) != 0)
    end();
}

void Inquiries::end() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void Inquiries::answer(const std::function<std::string()>& text) const {
  while (true) {
    const int asker = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (asker < 0) return;
    if (may_know(asker)) {
      const std::string told = text();
      if (send(asker, told.data(), told.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {  // he has gone
      }
    }
    close(asker);
  }
}

}  // namespace headway::launcher
