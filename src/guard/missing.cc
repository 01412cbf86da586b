#include "guard/missing.h"

#include <cerrno>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/sanitizer.h"

namespace headway::guard {
namespace {

bool is_empty(Range range, uint8_t* scratch) {
  if (mincore(range.base, range.bytes(), scratch) != 0) return false;
  for (size_t i = 0; i < range.pages; ++i) {
    if (scratch[i] & 1) return false;
  }
  return true;
}

}  // namespace

Outcome Missing::close(Range range, bool keep, uint8_t* scratch, char*& view) {
  view = map_aside(range.pages);
  if (!view) return Outcome::no_memory;
  const Outcome closed =
      descriptor_.can_move() ? move_aside(range, view) : drop(range, keep, scratch, view);
  if (closed != Outcome::ok) {
    give_back(view, range.pages);
    view = nullptr;
  }
  return closed;
}

// The pages become the view.
Outcome Missing::move_aside(Range range, char* view) {
  Outcome closed = descriptor_.watch(range, UFFDIO_REGISTER_MODE_MISSING);
  if (closed != Outcome::ok) return closed;
  closed = descriptor_.move_aside(range, view);
  if (closed == Outcome::ok) return closed;
  descriptor_.unwatch(range);
  make_ours(range);
  closed = descriptor_.watch(range, UFFDIO_REGISTER_MODE_MISSING);
  if (closed == Outcome::ok) closed = descriptor_.move_aside(range, view);
  if (closed != Outcome::ok) descriptor_.unwatch(range);
  return closed;
}

Outcome Missing::drop(Range range, bool keep, uint8_t* scratch, char* view) {
  if (keep) base::copy_pages(view, range.base, range.bytes());
  // Drop first: once the range is watched, dropping waits for somebody who reads of it. A locked
  // page makes this fail, perhaps half-way.
  Outcome closed = Outcome::refused;
  if (madvise(range.base, range.bytes(), MADV_DONTNEED) == 0) {
    closed = descriptor_.watch(range, UFFDIO_REGISTER_MODE_MISSING);
  }
  if (closed == Outcome::ok && !is_empty(range, scratch)) {
    // Somebody touched a page in between. From now on nobody could, so it cannot happen later.
    descriptor_.unwatch(range);
    closed = Outcome::refused;
  }
  if (closed != Outcome::ok && keep) base::copy_pages(range.base, view, range.bytes());
  return closed;
}

size_t Missing::open(char* base, const char* view, size_t pages, bool& gone) {
  gone = false;
  size_t done = 0, most = pages;
  while (done < pages) {
    uffdio_copy copy = {};
    copy.dst = reinterpret_cast<uint64_t>(base + done * page_bytes);
    copy.src = reinterpret_cast<uint64_t>(view + done * page_bytes);
    copy.len = (pages - done < most ? pages - done : most) * page_bytes;
    const bool all = ioctl(descriptor_.fd(), UFFDIO_COPY, &copy) == 0;
    const int error = errno;
    if (copy.copy > 0) done += size_t(copy.copy) / page_bytes;
    if (all || error == EINTR) continue;
    // The kernel fills one mapping a call, and a heap that shrank and grew consists of several.
    if (error == ENOENT && copy.len > page_bytes) {
      most = copy.len / page_bytes / 2;
      continue;
    }
    // EAGAIN after some pages: the kernel let others in between. After none: the address space is
    // changing, and its changer waits until somebody reads of it.
    if (error == EAGAIN && copy.copy > 0) continue;
    gone = error != EAGAIN && error != ENOMEM;
    break;
  }
  return done;
}

void Missing::clear(char* page) {
  uffdio_zeropage zero = {};
  zero.range.start = reinterpret_cast<uint64_t>(page);
  zero.range.len = page_bytes;
  if (ioctl(descriptor_.fd(), UFFDIO_ZEROPAGE, &zero) == 0) return;
  // There already, by somebody else: then only the one who waits has to be told.
  uffdio_range range = {reinterpret_cast<uint64_t>(page), page_bytes};
  (void)ioctl(descriptor_.fd(), UFFDIO_WAKE, &range);
}

void Missing::give_back(char* view, size_t pages) { munmap(view, pages * page_bytes); }

}  // namespace headway::guard
