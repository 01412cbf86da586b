#include "guard/minor.h"

#include <cerrno>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

// Linux 5.13 and 5.18; older headers do not have them.
#ifndef UFFDIO_CONTINUE
#define UFFD_FEATURE_MINOR_SHMEM (1 << 10)
#define UFFDIO_REGISTER_MODE_MINOR ((__u64)1 << 2)
struct uffdio_continue {
  struct uffdio_range range;
  __u64 mode;
  __s64 mapped;
};
#define UFFDIO_CONTINUE _IOWR(UFFDIO, 0x07, struct uffdio_continue)
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

namespace headway::guard {

Outcome Minor::start() {
  Outcome started = descriptor_.start(UFFD_FEATURE_MINOR_SHMEM);
  if (started != Outcome::ok) return started;
  page_table_ = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  started = page_table_ < 0 ? Outcome::refused : aliases_.start(&descriptor_);
  if (started == Outcome::ok) started = probe();
  if (started != Outcome::ok) stop();
  return started;
}

// One page, closed and opened.
Outcome Minor::probe() {
  void* page =
      mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return Outcome::no_memory;
  const Range range{static_cast<char*>(page), 1};
  uint8_t scratch;
  char* view;
  bool gone;
  Outcome works = close(range, false, &scratch, view);
  if (works == Outcome::ok) {
    if (open(range.base, view, 1, gone) != 1) works = Outcome::unsupported;
    forget(range);
    give_back(view, 1);
  }
  munmap(page, page_bytes);
  return works;
}

void Minor::stop() {
  descriptor_.stop();
  aliases_.stop();
  if (page_table_ >= 0) ::close(page_table_);
  page_table_ = -1;
}

Outcome Minor::close(Range range, bool keep, uint8_t* /*scratch*/, char*& view) {
  Aliases::Taken taken;
  Outcome closed = aliases_.take(range, keep, taken);
  if (closed != Outcome::ok) return closed;
  view = taken.view;
  // Out of the page table first: once the range is watched, that waits for somebody who reads of
  // it.
  closed = Outcome::refused;
  if (madvise(range.base, range.bytes(), MADV_DONTNEED_LOCKED) == 0) {
    closed = descriptor_.watch(range, UFFDIO_REGISTER_MODE_MINOR);
  }
  if (closed == Outcome::ok && !is_closed(range)) {
    // Somebody touched a page in between. From now on nobody could, so it cannot happen later.
    descriptor_.unwatch(range);
    closed = Outcome::refused;
  }
  if (closed == Outcome::ok) return closed;
  aliases_.give(view);
  view = nullptr;
  return closed;
}

bool Minor::is_closed(Range range) const {
  constexpr uint64_t present = 1ull << 63, swapped = 1ull << 62;
  uint64_t entries[512];
  uint64_t at = reinterpret_cast<uint64_t>(range.base) / page_bytes;
  for (size_t left = range.pages; left > 0;) {
    const size_t n = left < 512 ? left : 512;
    if (pread(page_table_, entries, n * sizeof(uint64_t), off_t(at * sizeof(uint64_t))) !=
        ssize_t(n * sizeof(uint64_t))) {
      return false;
    }
    for (size_t i = 0; i < n; ++i) {
      if (entries[i] & (present | swapped)) return false;
    }
    at += n;
    left -= n;
  }
  return true;
}

size_t Minor::open(char* base, const char* /*view*/, size_t pages, bool& gone) {
  gone = false;
  size_t done = 0, most = pages;
  while (done < pages) {
    uffdio_continue wish = {};
    wish.range.start = reinterpret_cast<uint64_t>(base + done * page_bytes);
    wish.range.len = (pages - done < most ? pages - done : most) * page_bytes;
    const bool all = ioctl(descriptor_.fd(), UFFDIO_CONTINUE, &wish) == 0;
    const int error = errno;
    if (wish.mapped > 0) done += size_t(wish.mapped) / page_bytes;
    if (all || error == EINTR) continue;
    if (error == EEXIST && wish.mapped <= 0) {  // there already
      ++done;
      continue;
    }
    // Each mapping takes a call of its own.
    if (error == ENOENT && wish.range.len > page_bytes) {
      most = wish.range.len / page_bytes / 2;
      continue;
    }
    // EAGAIN after some pages: one of them was there, or others were let in between. After none:
    // the address space is changing, and its changer waits until somebody reads of it.
    if (error == EAGAIN && wish.mapped > 0) continue;
    gone = error != EAGAIN && error != ENOMEM;
    break;
  }
  return done;
}

void Minor::clear(char* page) {
  uffdio_continue wish = {};
  wish.range.start = reinterpret_cast<uint64_t>(page);
  wish.range.len = page_bytes;
  if (ioctl(descriptor_.fd(), UFFDIO_CONTINUE, &wish) == 0) return;
  (void)ioctl(descriptor_.fd(), UFFDIO_WAKE, &wish.range);
}

void Minor::give_back(char* view, size_t /*pages*/) { aliases_.give(view); }

}  // namespace headway::guard
