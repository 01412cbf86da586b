#include "guard/detail/curtain.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <linux/userfaultfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/check.h"
#include "base/heap.h"
#include "base/machine.h"

// Linux 5.7 and 5.13; older headers do not have them.
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef UFFDIO_REGISTER_MODE_MINOR
#define UFFDIO_REGISTER_MODE_MINOR ((__u64)1 << 2)
#endif

namespace headway::guard {
namespace {

constexpr uint64_t most_file_bytes = uint64_t(1) << 44;
constexpr size_t large_page = 512;  // pages
constexpr size_t stock_pages = 24;  // every second one is a mapping of its own
constexpr int read_write = PROT_READ | PROT_WRITE;

Outcome because_of(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE: return Outcome::no_resource;
    case ENOMEM:
    case ENOSPC:
    case EAGAIN:
    case EFBIG: return Outcome::no_memory;
    case EINVAL: return Outcome::unsupported;
    default: return Outcome::refused;
  }
}

bool move_pages(char* from, size_t pages, char* to, int more = 0) {
  const size_t n = pages * page_bytes;
  return mremap(from, n, n, MREMAP_MAYMOVE | MREMAP_FIXED | more, to) != MAP_FAILED;
}

// A handler of the program that came between would wait for its own thread.
class NoSignals {
 public:
  explicit NoSignals(bool wanted) : wanted_(wanted) {
    if (!wanted_) return;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() {
    if (wanted_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  const bool wanted_;
  sigset_t before_;
};

}  // namespace

Outcome Curtain::start(const Descriptor* holds) {
  holds_ = holds;
  if (const Outcome opened = mappings_.open(); opened != Outcome::ok) return opened;
  fd_ = memfd_create(Mappings::curtain_name, MFD_CLOEXEC);
  struct stat status;
  size_ = most_file_bytes;
  rlimit limit = {};
  // Beyond the limit there is a signal, not an error. What is not accessible needs no file behind.
  if (holds_ && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size_) {
    size_ = limit.rlim_cur / page_bytes * page_bytes;
  }
  Outcome works = Outcome::ok;
  if (fd_ < 0 || (holds_ && ftruncate(fd_, off_t(size_)) != 0) || fstat(fd_, &status) != 0) {
    works = because_of(errno);
  } else {
    file_ = {uint64_t(major(status.st_dev)) << 32 | minor(status.st_dev), status.st_ino};
    works = probe();
  }
  if (works != Outcome::ok) stop();
  return works;
}

// One page, there and back.
Outcome Curtain::probe() {
  char* page = map_aside(1);
  if (!page) return Outcome::no_memory;
  char* view = nullptr;
  Outcome works = close({page, 1}, true, view);
  if (works == Outcome::ok) {
    bool gone;
    char* now;
    if (open(page, view, 1, gone, now) != 1) works = Outcome::unsupported;
    give_back(view, 1);
  }
  munmap(page, page_bytes);
  return works;
}

void Curtain::stop() {
  for (size_t i = closed_.size(); i-- > 0;) {
    Closed& closed = closed_[i];
    closed.over = true;
    for (size_t page = 0; page < closed.range.pages; ++page) {
      if (closed.states[page] == State::closed) closed.states[page] = State::arrived;
    }
    (void)bring_home(closed);
    remove(&closed);
  }
  use_stock();
  mappings_.close();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Outcome Curtain::close(Range range, bool keep, char*& view) {
  bring_leftovers_home();
  // Between the program's page and the watch there is a moment that only we may see.
  if (keep && holds_ && !base::has_one_thread()) return Outcome::refused;
  Closed closed = {};
  Outcome outcome = add(range, closed);
  if (outcome != Outcome::ok) return outcome;
  outcome = draw(closed, keep);
  const base::SpinGuard held(lock_);
  closing_ = {};
  if (outcome != Outcome::ok) {
    remove(&closed_.back());
    return outcome;
  }
  view = closed.view;
  return outcome;
}

// Known before it is closed: a touch asks at once.
Outcome Curtain::add(Range range, Closed& closed) {
  closed.range = range;
  if (range.bytes() > size_) return Outcome::no_memory;
  if (!find_parts(closed)) return Outcome::refused;
  closed.states = static_cast<State*>(base::heap_allocate(range.pages));
  if (!closed.states) return Outcome::no_memory;
  memset(closed.states, int(State::closed), range.pages);
  const base::SpinGuard held(lock_);
  if (find_offset(closed) && stock() && reserve(closed)) {
    HEADWAY_CHECK(!shares_offsets(closed.offset, range.bytes()));
    if (closed_.push(closed)) {
      next_ = closed.offset + range.bytes();
      closing_ = range;
      return Outcome::ok;
    }
    release(closed);
  }
  base::heap_free(closed.states, range.pages);
  return Outcome::no_memory;
}

// The first one, or null.
const Curtain::Closed* Curtain::shares_offsets(uint64_t offset, uint64_t bytes) const {
  for (const Closed& other : closed_) {
    if (offset < other.offset + other.range.bytes() && other.offset < offset + bytes) return &other;
  }
  return nullptr;
}

// Behind the last one, or from the beginning of the file on: where nobody else's pages are.
bool Curtain::find_offset(Closed& closed) {
  const uint64_t bytes = closed.range.bytes();
  for (int lap = 0; lap < 2; ++lap, next_ = 0) {
    while (next_ + bytes <= size_) {
      closed.offset = next_;
      const Closed* other = shares_offsets(next_, bytes);
      if (!other) return true;
      next_ = other->offset + other->range.bytes();
    }
  }
  return false;
}

Outcome Curtain::draw(const Closed& closed, bool keep) {
  const NoSignals quiet(keep);
  size_t moved = 0;
  if (keep && mprotect(closed.range.base, closed.range.bytes(), PROT_NONE) != 0) {
    const int error = errno;
    (void)mprotect(closed.range.base, closed.range.bytes(), read_write);  // some may be closed
    return because_of(error);
  }
  const Outcome hung = hang(closed, keep, moved);
  if (hung == Outcome::ok) return hung;
  if (keep) (void)mprotect(closed.view, closed.range.bytes(), read_write);
  size_t home = move(closed, 0, moved, closed.range.base);
  if (home < moved) {
    use_stock();
    home += move(closed, home, moved - home, closed.range.base + home * page_bytes);
  }
  memset(closed.states, int(State::open), home);  // not in the view
  if (keep) (void)mprotect(closed.range.base, closed.range.bytes(), read_write);
  return hung;
}

// `moved`: pages that are in the view.
Outcome Curtain::hang(const Closed& closed, bool keep, size_t& moved) {
  const Range range = closed.range;
  for (size_t i = 0; i < closed.parts; ++i) {
    const size_t n = closed.ends[i] - moved;
    const size_t at = moved * page_bytes;
    if (!move_pages(range.base + at, n, closed.view + at, MREMAP_DONTUNMAP)) {
      return because_of(errno);
    }
    moved += n;
  }
  if (keep && mprotect(closed.view, range.bytes(), read_write) != 0) return because_of(errno);
  const int access = holds_ ? read_write : PROT_NONE;
  if (mmap(range.base, range.bytes(), access, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd_,
           off_t(closed.offset)) == MAP_FAILED) {
    return because_of(errno);
  }
  if (!holds_) return Outcome::ok;
  // The file is a hole; but a forked child may write there.
  return holds_->watch(range, UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR);
}

// Locked memory, large pages, files, code and stacks stay where they are.
bool Curtain::find_parts(Closed& closed) {
  const Range range = closed.range;
  const char* frame = static_cast<const char*>(__builtin_frame_address(0));
  for (char* at = range.base; at < range.end();) {
    Mapping found;
    if (closed.parts == most_parts || !mappings_.find(at, found) || !found.holds(at) ||
        found.what != Mapping::What::plain || !found.readable || !found.writable ||
        found.executable || found.holds(frame)) {
      return false;
    }
    // The one advice that does nothing to the contents and is refused to locked memory.
    if (madvise(at, page_bytes, MADV_COLD) != 0) return false;
    // A mapping that was written to remembers where it belongs, and becomes one with its
    // neighbours again.
    make_ours({at, 1});
    at = found.to < range.end() ? found.to : range.end();
    closed.ends[closed.parts++] = size_t(at - range.base) / page_bytes;
  }
  return true;
}

// The page in front stays until the end, so that no two views begin at one address.
bool Curtain::reserve(Closed& closed) {
  const size_t slack = closed.range.pages < large_page ? 0 : large_page - 1;
  const size_t pages = 1 + slack + closed.range.pages;
  void* room = mmap(nullptr, pages * page_bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  closed.front = static_cast<char*>(room);
  // At the same place of a large page: its part of the page table is moved as a whole.
  const size_t distance = (reinterpret_cast<uintptr_t>(closed.range.base) / page_bytes -
                           reinterpret_cast<uintptr_t>(closed.front) / page_bytes - 1) %
                          large_page;
  closed.view = closed.front + (1 + (slack ? distance : 0)) * page_bytes;
  char* end = closed.view + closed.range.bytes();
  char* room_end = closed.front + pages * page_bytes;
  if (end < room_end) munmap(end, size_t(room_end - end));
  return true;
}

// What has been moved home is no longer there: others may have these addresses by now.
void Curtain::release(const Closed& closed) {
  munmap(closed.front, size_t(closed.view - closed.front));
  for (size_t page = 0; page < closed.range.pages; ++page) {
    if (closed.states[page] != State::open) munmap(closed.view + page * page_bytes, page_bytes);
  }
}

// How many it has moved: each mapping is moved wholly or not at all.
size_t Curtain::move(const Closed& closed, size_t first, size_t count, char* to) {
  const size_t begin = first, end = first + count;
  for (size_t i = 0; i < closed.parts && first < end; ++i) {
    if (closed.ends[i] <= first) continue;
    const size_t n = (closed.ends[i] < end ? closed.ends[i] : end) - first;
    if (!move_pages(closed.view + first * page_bytes, n, to + (first - begin) * page_bytes)) break;
    first += n;
  }
  return first - begin;
}

// Before the end, pages may be so many pieces that no stock would do; from then on each that is
// moved leaves fewer mappings.
bool Curtain::put_back(Closed& closed, size_t first, size_t count, char* to) {
  const size_t begin = first, end = first + count;
  bool all = true;
  for (size_t i = 0; i < closed.parts && first < end; ++i) {
    if (closed.ends[i] <= first) continue;
    const size_t n = (closed.ends[i] < end ? closed.ends[i] : end) - first;
    char* here = to + (first - begin) * page_bytes;
    bool moved = move(closed, first, n, here) == n;
    if (!moved && closed.over && stock_) {
      use_stock();
      moved = move(closed, first, n, here) == n;
    }
    memset(closed.states + first, int(moved ? State::open : State::arrived), n);
    if (!moved) leftovers_ = true;
    all = all && moved;
    first += n;
  }
  return all;
}

size_t Curtain::open(char* base, const char* view, size_t pages, bool& gone, char*& now) {
  gone = false;
  now = nullptr;
  const base::SpinGuard held(lock_);
  Closed* closed = owner_of(view);
  if (!closed) {
    gone = true;
    return 0;
  }
  const size_t first = size_t(view - closed->view) / page_bytes;
  const uint64_t offset = closed->offset + first * page_bytes;
  const size_t here = mappings_.showing(base, pages, file_, offset);
  if (here == 0) {
    now = where_is(offset);
    gone = !now;
    if (gone) closed->states[first] = State::lost;
    return 0;
  }
  // It fails where the program has as many mappings as it may. Then it is tried again with the
  // pages that come later: in the end there are fewer mappings, not more.
  if (put_back(*closed, first, here, base) && leftovers_) (void)bring_home(*closed);
  return here;
}

// Opens the page and all beside it that have arrived.
bool Curtain::open_around(Closed& closed, size_t page) {
  size_t first = page, last = page + 1;
  while (first > 0 && closed.states[first - 1] == State::arrived) --first;
  while (last < closed.range.pages && closed.states[last] == State::arrived) ++last;
  char* from = closed.range.base + first * page_bytes;
  const uint64_t offset = closed.offset + first * page_bytes;
  // Elsewhere by now, or nowhere: look() sees to those that somebody touches.
  const size_t here = mappings_.showing(from, last - first, file_, offset);
  if (here < last - first) {
    memset(closed.states + first + here, int(State::lost), last - first - here);
  }
  return put_back(closed, first, here, from);
}

bool Curtain::bring_home(Closed& closed) {
  bool all = true;
  const size_t n = closed.range.pages;
  for (size_t i = 0; i < n; ++i) {
    if (closed.states[i] != State::arrived || open_around(closed, i)) continue;
    all = false;
    while (i + 1 < n && closed.states[i + 1] == State::arrived) ++i;  // tried with it
  }
  return all;
}

void Curtain::bring_leftovers_home() {
  const base::SpinGuard held(lock_);
  for (size_t i = closed_.size(); i-- > 0;) {
    if (closed_[i].over && bring_home(closed_[i])) remove(&closed_[i]);
  }
}

void Curtain::forget(Range range) {
  const base::SpinGuard held(lock_);
  for (Closed& closed : closed_) {
    if (range.base < closed.range.end() && closed.range.base < range.end())
      (void)bring_home(closed);
  }
}

void Curtain::give_back(const char* view, size_t pages) {
  const base::SpinGuard held(lock_);
  for (Closed& closed : closed_) {
    if (closed.over || closed.view != view || closed.range.pages != pages) continue;
    closed.over = true;
    if (bring_home(closed)) remove(&closed);
    break;
  }
}

void Curtain::remove(Closed* closed) {
  release(*closed);
  base::heap_free(closed->states, closed->range.pages);
  closed_.remove_unordered(size_t(closed - closed_.begin()));
}

// Where pages have been moved home, others may have got their addresses.
Curtain::Closed* Curtain::owner_of(const char* view) {
  for (Closed& closed : closed_) {
    if (view < closed.view || view >= closed.view + closed.range.bytes()) continue;
    if (closed.states[size_t(view - closed.view) / page_bytes] == State::closed) return &closed;
  }
  return nullptr;
}

char* Curtain::where_is(uint64_t offset) {
  Mapping found;
  for (const char* from = nullptr; mappings_.find(from, found); from = found.to) {
    if (found.shared && found.file == file_ && offset >= found.offset &&
        offset - found.offset < uint64_t(found.to - found.from)) {
      return found.from + (offset - found.offset);
    }
  }
  return nullptr;
}

// What counts is the page of the file, not the address: it may have moved here, and another away.
Curtain::Found Curtain::look(char* page, char*& home) {
  home = nullptr;
  const base::SpinGuard held(lock_);
  Mapping found;
  if (!mappings_.find(page, found) || !found.holds(page)) return Found::stranger;
  if (found.shared && found.file == file_) return look_in(page, found.offset_of(page), home);
  // Opened since.
  if (found.readable && found.writable) return Found::open;
  return page >= closing_.base && page < closing_.end() ? Found::closed : Found::stranger;
}

Curtain::Found Curtain::look_in(char* page, uint64_t offset, char*& home) {
  for (Closed& closed : closed_) {
    if (offset < closed.offset || offset - closed.offset >= closed.range.bytes()) continue;
    const size_t which = size_t(offset - closed.offset) / page_bytes;
    if (closed.states[which] == State::open) continue;  // of an older one
    char* first = closed.range.base + which * page_bytes;
    if (closed.states[which] == State::closed) {
      if (first != page) home = first;
      return Found::closed;
    }
    // Whoever was to open it lost its core, or there was no mapping left for it.
    const bool opened =
        first == page ? open_around(closed, which) : put_back(closed, which, 1, page);
    return opened ? Found::open : Found::closed;
  }
  // Of nobody any more, as after a drop: zeros.
  return mmap(page, page_bytes, read_write, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page
             ? Found::open
             : Found::closed;
}

// What the parent's threads were about, its lock among it, is nobody's here.
bool Curtain::open_in_child(char* page) {
  for (Closed& closed : closed_) {
    if (page < closed.range.base || page >= closed.range.end()) continue;
    const size_t which = size_t(page - closed.range.base) / page_bytes;
    closed.over = true;
    if (closed.states[which] != State::open) return put_back(closed, which, 1, page);
  }
  return false;
}

// Moving takes a few mappings more for a moment, which the program may have used up meanwhile.
bool Curtain::stock() {
  if (stock_) return true;
  void* room = mmap(nullptr, stock_pages * page_bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  stock_ = static_cast<char*>(room);
  for (size_t i = 1; i < stock_pages; i += 2) {
    if (mprotect(stock_ + i * page_bytes, page_bytes, PROT_READ) == 0) continue;
    use_stock();
    return false;
  }
  return true;
}

void Curtain::use_stock() {
  if (stock_) munmap(stock_, stock_pages * page_bytes);
  stock_ = nullptr;
}

}  // namespace headway::guard
