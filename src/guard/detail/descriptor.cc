#include "guard/detail/descriptor.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <initializer_list>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitizer.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

// Linux 6.8; older headers do not have it.
#ifndef UFFDIO_MOVE
#define UFFD_FEATURE_MOVE (1 << 16)
#define UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES ((__u64)1 << 1)
struct uffdio_move {
  __u64 dst;
  __u64 src;
  __u64 len;
  __u64 mode;
  __s64 move;
};
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif

// Linux 5.18.
#ifndef UFFD_FEATURE_MINOR_SHMEM
#define UFFD_FEATURE_MINOR_SHMEM (1 << 10)
#endif

// Linux 6.4 and 6.7.
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif

namespace headway::guard {
namespace {

constexpr size_t large_page = 512;  // pages

constexpr int most_tries = 100;  // of a move while the address space changes

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

char* map_aside(size_t pages) {
  void* aside = mmap(nullptr, pages * page_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return aside == MAP_FAILED ? nullptr : static_cast<char*>(aside);
}

// The program may have anything there: a forbidden zone of its allocator, another thread's data.
[[gnu::no_sanitize("address", "thread")]] void make_ours(Range range) {
  for (char* page = range.base; page < range.end(); page += page_bytes) {
    (void)__atomic_fetch_or(page, 0, __ATOMIC_RELAXED);
  }
}

Outcome Descriptor::start(uint64_t features, bool moves) { return open(events | features, moves); }

Outcome Descriptor::start_to_hold() {
  return open(UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM,
              false);
}

void Descriptor::start_to_probe() { (void)open(0, true); }

Outcome Descriptor::start_to_follow() {
  const Outcome opened = open(
      UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_UNPOPULATED | UFFD_FEATURE_WP_ASYNC, true);
  if (opened != Outcome::ok || moves_) return opened;
  stop();
  return Outcome::unsupported;
}

Outcome Descriptor::open(uint64_t features, bool moves) {
  fd_ = open_any(sees_kernel_);
  if (fd_ < 0) {
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? Outcome::no_resource
                                                                 : Outcome::refused;
  }
  for (const uint64_t more : {uint64_t(UFFD_FEATURE_MOVE), uint64_t(0)}) {
    if (more && !moves) continue;
    uffdio_api api = {};
    api.api = UFFD_API;
    api.features = features | more;
    moves_ = more != 0;
    if (ioctl(fd_, UFFDIO_API, &api) == 0) return Outcome::ok;
  }
  stop();
  return Outcome::unsupported;
}

void Descriptor::stop() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  moves_ = false;
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

bool Descriptor::unprotect(Range range) const {
  uffdio_writeprotect wish = {};
  wish.range = {reinterpret_cast<uint64_t>(range.base), range.bytes()};
  return ioctl(fd_, UFFDIO_WRITEPROTECT, &wish) == 0;
}

// `to` must be watched. True: all of it, `done` bytes else.
bool Descriptor::move(char* from, char* to, size_t bytes, size_t& done) const {
  size_t most = bytes;
  int tries = 0;
  for (done = 0; done < bytes;) {
    uffdio_move wish = {};
    wish.dst = reinterpret_cast<uint64_t>(to + done);
    wish.src = reinterpret_cast<uint64_t>(from + done);
    wish.len = bytes - done < most ? bytes - done : most;
    wish.mode = UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES;
    const bool all = ioctl(fd_, UFFDIO_MOVE, &wish) == 0;
    const int error = errno;
    if (wish.move > 0) done += size_t(wish.move);
    if (all || wish.move > 0) continue;
    // The kernel moves within one mapping a call, and a heap that shrank and grew has several.
    if ((error == EINVAL || error == ENOENT) && wish.len > page_bytes) {
      most = wish.len / page_bytes / 2 * page_bytes;
      continue;
    }
    if ((error != EAGAIN && error != EINTR) || ++tries == most_tries) return false;
    sched_yield();
  }
  return true;
}

Outcome Descriptor::move_aside(Range range, char* to) const {
  // Nobody else watches that memory, and nobody touches it.
  const Range aside{to, range.pages};
  Outcome closed = watch(aside, UFFDIO_REGISTER_MODE_MISSING);
  size_t done = 0;
  if (closed == Outcome::ok && !move(range.base, to, range.bytes(), done)) {
    closed = Outcome::refused;
    size_t back = 0;
    const bool returned = done == 0 || move(to, range.base, done, back);
    unwatch(aside);
    if (!returned) {
      // The address space goes on changing.
      unwatch(range);
      base::copy_pages(range.base + back, to + back, done - back);
    }
    return closed;
  }
  unwatch(aside);
  return closed;
}

bool Descriptor::move_there_and_back(Range range, char* aside) const {
  const bool moved = move_aside(range, aside) == Outcome::ok;
  size_t back = 0;
  const bool returned = !moved || move(aside, range.base, range.bytes(), back);
  unwatch(range);
  if (!returned) base::copy_pages(range.base + back, aside + back, range.bytes() - back);
  return moved;
}

bool Descriptor::is_held(Range range) const {
  if (!moves_) return false;
  // A signal handler that touched these pages would wait for us for ever.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool held = cannot_move(range);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return held;
}

bool Descriptor::cannot_move(Range range) const {
  // At the same place of a large page, so that those of the program move as they are.
  const size_t slack = range.pages < large_page ? 0 : large_page - 1;
  char* room = map_aside(range.pages + slack);
  if (!room) return true;
  const uintptr_t distance = reinterpret_cast<uintptr_t>(range.base) / page_bytes -
                             reinterpret_cast<uintptr_t>(room) / page_bytes;
  char* aside = slack ? room + distance % large_page * page_bytes : room;
  bool moved = false;
  for (int i = 0; i < 2 && !moved; ++i) {
    if (watch(range, UFFDIO_REGISTER_MODE_MISSING) != Outcome::ok) break;
    moved = move_there_and_back(range, aside);
    if (!moved) make_ours(range);
  }
  munmap(room, (range.pages + slack) * page_bytes);
  return !moved;
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
