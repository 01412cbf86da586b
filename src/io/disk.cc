#include "io/disk.h"

#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/check.h"
#include "base/descriptors.h"
#include "io/counters.h"

namespace headway::io {
namespace {

// In one call. Linux moves up to 2 GB; who looks from outside whether the job gets on is to see
// more than one call in a minute, on slow disks too.
constexpr uint64_t most_at_once = 64 << 20;

Failure failure(int error, const char* act, int64_t offset = no_place) {
  return {.error = error ? error : EIO, .act = act, .offset = offset};
}

// Calls it again as long as a signal interrupts it.
template <class Call>
auto uninterrupted(Call&& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// False: some byte of it is at a place that no file has.
bool is_place(int64_t offset, uint64_t n) {
  return offset >= 0 && n <= uint64_t(INT64_MAX) - uint64_t(offset);
}

// What can be read and written at any offset.
int kind_error(const struct stat& about) {
  if (S_ISREG(about.st_mode) || S_ISBLK(about.st_mode) || S_ISCHR(about.st_mode)) return 0;
  return S_ISDIR(about.st_mode) ? EISDIR : ESPIPE;
}

// File systems whose other machines see a change late (their magic numbers: statfs(2)).
bool is_remote_kind(uint64_t magic) {
  constexpr uint64_t kinds[] = {
      0x6969,      // NFS
      0x517b,      // SMB
      0xff534d42,  // CIFS
      0xfe534d42,  // SMB2
      0x01021997,  // 9P
      0x65735546,  // FUSE
      0x00c36400,  // Ceph
      0x5346414f,  // AFS
      0x0bd00bd0,  // Lustre
  };
  for (const uint64_t kind : kinds) {
    if (magic == kind) return true;
  }
  return false;
}

}  // namespace

Failure Disk::open(const char* name, int flags, unsigned permissions) {
  HEADWAY_CHECK(!is_open());
  // Nobody waits for the other end of a pipe.
  const int fd = uninterrupted([&] {
    return base::with_room(
        [&] { return ::open(name, flags | O_CLOEXEC | O_NONBLOCK, mode_t(permissions)); });
  });
  if (fd < 0) return failure(errno, "open");
  struct stat about;
  int error = fstat(fd, &about) == 0 ? kind_error(about) : errno;
  if (!error) {
    const int now = fcntl(fd, F_GETFL);
    if (now < 0 || fcntl(fd, F_SETFL, now & ~O_NONBLOCK) < 0) error = errno;
  }
  if (error) {
    ::close(fd);
    return failure(error, "open");
  }
  struct statfs system;
  remote_ = fstatfs(fd, &system) == 0 && is_remote_kind(uint64_t(uint32_t(system.f_type)));
  fd_ = fd;
  device_ = uint64_t(about.st_dev);
  number_ = uint64_t(about.st_ino);
  return {};
}

Failure Disk::close() {
  if (fd_ < 0) return {};
  // Whatever it says, the descriptor is gone: it must not be closed again.
  const int closed = ::close(fd_);
  fd_ = -1;
  return closed == 0 || errno == EINTR ? Failure{} : failure(errno, "close");
}

Failure Disk::read(int64_t offset, char* to, uint64_t n, uint64_t& got) const {
  got = 0;
  if (!is_place(offset, n)) return failure(EOVERFLOW, "read", offset);
  while (got < n) {
    const uint64_t now = n - got < most_at_once ? n - got : most_at_once;
    const int64_t at = offset + int64_t(got);
    const ssize_t moved =
        uninterrupted([&] { return pread(fd_, to + got, size_t(now), off_t(at)); });
    count(counters.reads);
    if (moved < 0) return failure(errno, "read", at);
    if (moved == 0) break;  // the end of the file
    count(counters.bytes_read, uint64_t(moved));
    got += uint64_t(moved);
  }
  return {};
}

Failure Disk::write(int64_t offset, const char* from, uint64_t n) const {
  if (!is_place(offset, n)) return failure(EFBIG, "write", offset);
  for (uint64_t put = 0; put < n;) {
    const uint64_t now = n - put < most_at_once ? n - put : most_at_once;
    const int64_t at = offset + int64_t(put);
    const ssize_t moved =
        uninterrupted([&] { return pwrite(fd_, from + put, size_t(now), off_t(at)); });
    count(counters.writes);
    if (moved < 0) return failure(errno, "write", at);
    // A device that takes nothing and says nothing.
    if (moved == 0) return failure(ENOSPC, "write", at);
    count(counters.bytes_written, uint64_t(moved));
    put += uint64_t(moved);
  }
  return {};
}

Failure Disk::size(int64_t& bytes) const {
  struct stat about;
  if (fstat(fd_, &about) != 0) return failure(errno, "ask for the size of");
  bytes = int64_t(about.st_size);
  if (S_ISBLK(about.st_mode)) {
    const off_t end = lseek(fd_, 0, SEEK_END);
    if (end < 0) return failure(errno, "ask for the size of");
    bytes = int64_t(end);
  }
  return {};
}

Failure Disk::set_size(int64_t bytes) const {
  const int done = uninterrupted([&] { return ftruncate(fd_, off_t(bytes)); });
  return done == 0 ? Failure{} : failure(errno, "set the size of", bytes);
}

Failure Disk::reserve(int64_t bytes) const {
  if (bytes == 0) return {};
  struct stat about;
  struct statvfs system;
  if (fstat(fd_, &about) != 0 || fstatvfs(fd_, &system) != 0)
    return failure(errno, "reserve space for", bytes);
  // The system would fill the disk before it finds that it cannot. Some file systems do not know
  // their size.
  constexpr uint64_t stat_block = 512;
  uint64_t available = 0, reachable = 0;
  if (__builtin_mul_overflow(uint64_t(system.f_bavail), uint64_t(system.f_frsize), &available) ||
      __builtin_add_overflow(available, uint64_t(about.st_blocks) * stat_block, &reachable)) {
    reachable = UINT64_MAX;
  }
  if (system.f_blocks != 0 && uint64_t(bytes) > reachable)
    return failure(ENOSPC, "reserve space for", bytes);
  // A file system may undo all of a call that a signal interrupts: so it is in pieces, and signals
  // wait for the end of each.
  sigset_t all, before;
  sigfillset(&all);
  int error = 0;
  for (int64_t at = 0; error == 0 && at < bytes;) {
    const int64_t now = bytes - at < int64_t(most_at_once) ? bytes - at : int64_t(most_at_once);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = posix_fallocate(fd_, off_t(at), off_t(now));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error == EINTR) {
      error = 0;
    } else {
      at += now;
    }
  }
  return error == 0 ? Failure{} : failure(error, "reserve space for", bytes);
}

Failure Disk::sync() const {
  const int done = uninterrupted([&] { return fsync(fd_); });
  // What has no store behind it, such as a device of characters, is as safe as it will be.
  return done == 0 || errno == EINVAL || errno == EROFS ? Failure{} : failure(errno, "sync");
}

Failure Disk::set_lock(int64_t from, int64_t to, int kind) const {
  struct flock range {};
  range.l_type = short(kind);
  range.l_whence = SEEK_SET;
  range.l_start = off_t(from);
  range.l_len = off_t(to - from);
  // F_OFD_SETLKW: the lock is the descriptor's, so that ranks and their threads are told apart.
  const int done = uninterrupted([&] { return fcntl(fd_, F_OFD_SETLKW, &range); });
  return done == 0 ? Failure{} : failure(errno, "lock", from);
}

Failure Disk::lock(int64_t from, int64_t to, bool exclusive) const {
  HEADWAY_CHECK(from < to);
  count(counters.locks);
  return set_lock(from, to, exclusive ? F_WRLCK : F_RDLCK);
}

Failure Disk::unlock(int64_t from, int64_t to) const { return set_lock(from, to, F_UNLCK); }

// A lock makes a client of a network file system ask the server what has changed.
void Disk::look_anew(bool exclusive) const {
  if (set_lock(0, INT64_MAX, exclusive ? F_WRLCK : F_RDLCK)) {
    (void)posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
  } else {
    (void)unlock(0, INT64_MAX);
  }
}

// Only a wish: what the system makes of it does not matter.
void Disk::expect(int64_t from, uint64_t n) const {
  (void)posix_fadvise(fd_, off_t(from), off_t(n), POSIX_FADV_WILLNEED);
}

Failure remove_file(const char* name) {
  return uninterrupted([&] { return unlink(name); }) == 0 ? Failure{} : failure(errno, "delete");
}

}  // namespace headway::io
