#include "transports/shm/segment.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/descriptors.h"
#include "base/memory_file.h"
#include "base/text.h"

namespace headway::shm {
namespace {

struct Head {
  uint64_t magic;
  int64_t cookie;
};
constexpr uint64_t head_magic = 0x4865616457696e31;  // "HeadWin1"
constexpr uint64_t most_bytes = uint64_t(1) << 46;   // no machine has more

Outcome why_not_opened(int error) {
  switch (error) {
    case ENOENT:
    case ESRCH: return Outcome::peer_lost;
    case EMFILE:
    case ENFILE: return Outcome::no_resource;
    case ENOMEM: return Outcome::no_memory;
    default: return Outcome::refused;
  }
}

}  // namespace

bool set_size(int fd, off_t size, off_t used) {
  return base::within_file_limit(
      [=] { return ftruncate(fd, size) == 0 && fallocate(fd, 0, 0, used) == 0; });
}

Outcome Segment::map(int fd, uint64_t bytes) {
  void* memory =
      mmap(nullptr, head_bytes + bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED) return Outcome::no_memory;
  memory_ = static_cast<char*>(memory);
  bytes_ = bytes;
  fd_ = fd;
  return Outcome::ok;
}

Outcome Segment::create(uint64_t bytes, Key& key) {
  HEADWAY_CHECK(!memory_);
  if (bytes > most_bytes) return Outcome::no_memory;
  const int fd = base::with_room([] { return memfd_create("headway-window", MFD_CLOEXEC); });
  if (fd < 0) return Outcome::no_resource;
  const bool has_size = set_size(fd, off_t(head_bytes + bytes), off_t(head_bytes));
  const Outcome mapped = has_size ? map(fd, bytes) : Outcome::no_memory;
  if (mapped != Outcome::ok) {
    close(fd);
    return mapped;
  }
  auto* head = reinterpret_cast<Head*>(memory_);
  head->magic = head_magic;
  head->cookie = int64_t(base::random_cookie());
  key = {getpid(), fd, head->cookie};
  return Outcome::ok;
}

Outcome Segment::attach(const Key& key, uint64_t bytes) {
  HEADWAY_CHECK(!memory_);
  if (key.pid <= 0 || bytes > most_bytes) return Outcome::refused;
  base::Text<64> path;
  path << "/proc/" << key.pid << "/fd/" << key.file;
  const int fd = base::with_room([&] { return open(path.c_str(), O_RDWR | O_CLOEXEC); });
  if (fd < 0) return why_not_opened(errno);
  struct stat info {};
  const bool fits = fstat(fd, &info) == 0 && info.st_size == off_t(head_bytes + bytes);
  const Outcome mapped = fits ? map(fd, bytes) : Outcome::refused;
  if (mapped != Outcome::ok) {
    close(fd);
    return mapped;
  }
  const auto* head = reinterpret_cast<const Head*>(memory_);
  if (head->magic == head_magic && head->cookie == key.cookie) return Outcome::ok;
  detach();
  return Outcome::refused;
}

Outcome Segment::reserve(uint64_t offset, uint64_t n) {
  HEADWAY_CHECK(fd_ >= 0 && offset <= bytes_ && n <= bytes_ - offset);
  // In pieces: older kernels begin anew at each signal, and a profiler's may come sooner than a GB.
  constexpr uint64_t most = uint64_t(32) << 20;
  for (uint64_t done = 0; done < n;) {
    const uint64_t piece = n - done < most ? n - done : most;
    if (fallocate(fd_, 0, off_t(head_bytes + offset + done), off_t(piece)) == 0) {
      done += piece;
    } else if (errno != EINTR) {
      return Outcome::no_memory;
    }
  }
  return Outcome::ok;
}

void Segment::settle() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void Segment::detach() {
  settle();
  if (memory_) munmap(memory_, head_bytes + bytes_);
  memory_ = nullptr;
  bytes_ = 0;
}

}  // namespace headway::shm
