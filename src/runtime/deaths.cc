#include "runtime/deaths.h"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"

namespace headway::runtime {

static_assert(1u << 10 == shm::max_ranks);

bool Deaths::start(const shm::Node& node) {
  epoll_ = base::with_room([] { return epoll_create1(EPOLL_CLOEXEC); });
  if (epoll_ < 0) return false;
  for (uint32_t distance = 1; distance < node.ranks(); distance *= 2) {
    const uint32_t local = (node.self() + distance) % node.ranks();
    if (!watch(node, local) && distance == 1) {
      stop();
      return false;
    }
  }
  return true;
}

// Who came and went before this rank looked has no process to open any more: a descriptor that is
// readable stands for it, and next() asks as of the others whether it has said goodbye.
bool Deaths::watch(const shm::Node& node, uint32_t local) {
  const int pid = node.pid_of(local);
  int fd = base::with_room([pid] { return int(syscall(SYS_pidfd_open, pid, 0)); });
  if (fd < 0 && errno == ESRCH) fd = base::with_room([] { return eventfd(1, EFD_CLOEXEC); });
  if (fd < 0) return false;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = count_;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
    close(fd);
    return false;
  }
  watched_[count_++] = {local, fd};
  return true;
}

uint32_t Deaths::next(const shm::Node& node) {
  epoll_event events[most];
  const int count = epoll_wait(epoll_, events, int(most), 0);
  for (int i = 0; i < count; ++i) {
    Watched& one = watched_[events[i].data.u32];
    if (!node.has_left(one.local)) return one.local;
    forget(one.local);
  }
  return nobody;
}

void Deaths::forget(uint32_t local) {
  for (uint32_t i = 0; i < count_; ++i) {
    Watched& one = watched_[i];
    if (one.local != local || one.fd < 0) continue;
    close(one.fd);  // which takes it out of the epoll
    one.fd = -1;
  }
}

void Deaths::stop() {
  for (uint32_t i = 0; i < count_; ++i) {
    if (watched_[i].fd >= 0) close(watched_[i].fd);
  }
  count_ = 0;
  if (epoll_ >= 0) close(epoll_);
  epoll_ = -1;
}

}  // namespace headway::runtime
