#include "guard/detail/descriptor.h"

#include <cerrno>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

namespace headway::guard {
namespace {

constexpr uint64_t events =
    UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP;

int open_any(bool& sees_kernel) {
  constexpr int flags = O_CLOEXEC | O_NONBLOCK;
  sees_kernel = true;
  int fd = int(syscall(SYS_userfaultfd, flags));
  if (fd >= 0) return fd;
  // A node that the administrator gave to us.
  const int node = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (node >= 0) {
    fd = ioctl(node, USERFAULTFD_IOC_NEW, flags);
    close(node);
    if (fd >= 0) return fd;
  }
  sees_kernel = false;
  return int(syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY));
}

}  // namespace

Outcome Descriptor::start(uint64_t features) {
  fd_ = open_any(sees_kernel_);
  if (fd_ < 0) {
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? Outcome::no_resource
                                                                 : Outcome::refused;
  }
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = events | features;
  if (ioctl(fd_, UFFDIO_API, &api) == 0) return Outcome::ok;
  stop();
  return Outcome::unsupported;
}

void Descriptor::stop() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Outcome Descriptor::watch(Range range, uint64_t mode) const {
  uffdio_register wish = {};
  wish.range.start = reinterpret_cast<uint64_t>(range.base);
  wish.range.len = range.bytes();
  wish.mode = mode;
  if (ioctl(fd_, UFFDIO_REGISTER, &wish) == 0) return Outcome::ok;
  return errno == ENOMEM ? Outcome::no_memory : Outcome::refused;
}

void Descriptor::unwatch(Range range) const {
  uffdio_range which = {reinterpret_cast<uint64_t>(range.base), range.bytes()};
  // Whatever of it is no longer ours, or no longer there, is not watched either.
  (void)ioctl(fd_, UFFDIO_UNREGISTER, &which);
}

void Descriptor::serve(Listener& listener) const {
  uffd_msg messages[16];
  for (;;) {
    const ssize_t n = read(fd_, messages, sizeof messages);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    for (size_t i = 0; i < size_t(n) / sizeof messages[0]; ++i) {
      const uffd_msg& message = messages[i];
      const auto range = [](uint64_t from, uint64_t to) {
        return Range{reinterpret_cast<char*>(from), size_t(to - from) / page_bytes};
      };
      switch (message.event) {
        case UFFD_EVENT_PAGEFAULT: {
          const uint64_t page = message.arg.pagefault.address & ~uint64_t(page_bytes - 1);
          listener.heard(Event::touched, range(page, page + page_bytes), nullptr);
          break;
        }
        case UFFD_EVENT_REMOVE:
        case UFFD_EVENT_UNMAP:
          listener.heard(message.event == UFFD_EVENT_REMOVE ? Event::dropped : Event::unmapped,
                         range(message.arg.remove.start, message.arg.remove.end), nullptr);
          break;
        case UFFD_EVENT_REMAP: {
          const auto& move = message.arg.remap;
          listener.heard(Event::moved, range(move.from, move.from + move.len),
                         reinterpret_cast<char*>(move.to));
          break;
        }
        default: break;
      }
    }
  }
}

}  // namespace headway::guard
