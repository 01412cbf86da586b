#include "inquiries.h"

#include <cstddef>
#include <cstring>
#include <sys/mman.h>
#include <sys/resource.h>
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

// Memory that holds the text; -1 if there is none. It is a file to the kernel: beyond the limit on
// their sizes (ulimit -f) a write would kill.
int memory_of(const std::string& text) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || text.size() > limit.rlim_cur) return -1;
  const int fd = memfd_create("headway-where", MFD_CLOEXEC);
  if (fd < 0) return -1;
  for (size_t done = 0; done < text.size();) {
    const ssize_t put = write(fd, text.data() + done, text.size() - done);
    if (put <= 0) {
      close(fd);
      return -1;
    }
    done += size_t(put);
  }
  return fd;
}

void send_descriptor(int asker, int fd) {
  char byte = 0;
  iovec data = {&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof fd)] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(part), &fd, sizeof fd);
  if (sendmsg(asker, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {  // he has gone
  }
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
      const int answer = memory_of(told);
      if (answer >= 0) {
        send_descriptor(asker, answer);
        close(answer);
      } else if (send(asker, told.data(), told.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        // He has gone.
      }
    }
    close(asker);
  }
}

}  // namespace headway::launcher
