#include "guard/detail/aliases.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "guard/detail/private_copies.h"

namespace headway::guard {
namespace {

// mremap may let the program's mapping grow beyond the block: there must be file behind it.
constexpr uint64_t file_bytes = 1ull << 44;

constexpr size_t sweep_every = 16;  // takes

size_t rounded(size_t pages) {
  return (pages + Aliases::granularity - 1) / Aliases::granularity * Aliases::granularity;
}

bool overlap(Range a, Range b) { return a.base < b.end() && b.base < a.end(); }

Outcome because_of(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE: return Outcome::no_resource;
    case ENOMEM:
    case ENOSPC:
    case EAGAIN:
    case EFBIG: return Outcome::no_memory;
    default: return Outcome::refused;
  }
}

// A file of that many pages, all of them there: a hole would let a toucher in.
int make_file(size_t bytes, File& file) {
  rlimit limit = {};
  uint64_t size = file_bytes;
  // Beyond the limit there is a signal, not an error.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size) size = limit.rlim_cur;
  if (size < bytes) {
    errno = EFBIG;
    return -1;
  }
  const int fd = memfd_create(Mappings::alias_name, MFD_CLOEXEC);
  if (fd < 0) return -1;
  struct stat status;
  if (ftruncate(fd, off_t(size)) == 0 && fallocate(fd, 0, 0, off_t(bytes)) == 0 &&
      fstat(fd, &status) == 0) {
    file = {uint64_t(major(status.st_dev)) << 32 | minor(status.st_dev), status.st_ino};
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// Puts `mapping`, of the same size, where the range is, and takes its contents along. The steps
// that may fail come first; the last one is whole or not at all, also for who touches meanwhile.
Outcome move_over(char* mapping, Range range, char* view, bool keep) {
  if (mlock2(mapping, range.bytes(), MLOCK_ONFAULT) != 0) {
    return errno == EPERM || errno == ENOMEM || errno == EAGAIN ? Outcome::no_memory
                                                                : Outcome::refused;
  }
  if (keep) base::copy_pages(view, range.base, range.bytes());
  if (mremap(mapping, range.bytes(), range.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED, range.base) ==
      MAP_FAILED) {
    return because_of(errno);
  }
  return Outcome::ok;
}

}  // namespace

Outcome Aliases::start(const Descriptor* prober) {
  prober_ = prober;
  if (const Outcome opened = mappings_.open(); opened != Outcome::ok) return opened;
  // Once through all that a block needs.
  char* page = static_cast<char*>(
      mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Outcome works = Outcome::no_memory;
  Taken probe;
  if (page != MAP_FAILED) {
    works = madvise(page, page_bytes, MADV_COLD) == 0 ? take({page, 1}, false, probe)
                                                      : Outcome::unsupported;
    if (works == Outcome::ok) give(probe.view);
    munmap(page, page_bytes);
  }
  counters = {};
  if (works != Outcome::ok) stop();
  return works;
}

void Aliases::stop() {
  for (size_t i = blocks_.size(); i-- > 0;) drop(i);
  mappings_.close();
}

Outcome Aliases::take(Range range, bool keep, Taken& out) {
  if (++clock_ % sweep_every == 0) sweep(1);
  Block* block = find(range);
  const bool known = block && range.end() <= block->range.end() && stands(*block, range);
  if (!known && !(block && grow(*block, range, keep))) return make(range, keep, out);
  if (known) ++counters.reused;
  ++block->users;
  block->used = clock_;
  out.offset = uint64_t(range.base - block->range.base);
  out.view = block->view + out.offset;
  out.file = block->file;
  return Outcome::ok;
}

void Aliases::give(const char* view) {
  Block* block = holder(view);
  if (--block->users == 0 && block->stale) drop(size_t(block - blocks_.begin()));
}

// The block that the range begins in.
Aliases::Block* Aliases::find(Range range) {
  for (Block& block : blocks_) {
    if (!block.stale && range.base >= block.range.base && range.base < block.range.end()) {
      return &block;
    }
  }
  return nullptr;
}

Aliases::Block* Aliases::holder(const char* view) {
  for (Block& block : blocks_) {
    if (view >= block.view && view < block.view + block.room * page_bytes) return &block;
  }
  return nullptr;
}

// Unmapped and mapped anew, moved, shrunk and grown again, protected: all this shows in what the
// system says of the mapping.
bool Aliases::stands(const Block& block, Range range) {
  const uint64_t offset = uint64_t(range.base - block.range.base);
  return mappings_.showing(range.base, range.pages, block.file, offset, true) == range.pages;
}

// The next mapping of the block's file, its view left out.
bool Aliases::next_mapping(const Block& block, const char* from, Mapping& out) {
  while (mappings_.find(from, out)) {
    const bool is_view = out.from >= block.view && out.from < block.view + block.room * page_bytes;
    if (out.file == block.file && out.shared && !is_view) return true;
    from = out.to;
  }
  return false;
}

char* Aliases::moved_to(const char* view) {
  const Block* block = holder(view);
  const uint64_t offset = uint64_t(view - block->view);
  Mapping found;
  for (const char* from = nullptr; next_mapping(*block, from, found); from = found.to) {
    if (offset >= found.offset && offset - found.offset < uint64_t(found.to - found.from)) {
      return found.from + (offset - found.offset);
    }
  }
  return nullptr;
}

// Locked memory, large pages, files and stacks are not to be replaced.
bool Aliases::is_plain(Range range) {
  const char* frame = static_cast<const char*>(__builtin_frame_address(0));
  for (char* at = range.base; at < range.end();) {
    Mapping found;
    if (!mappings_.find(at, found) || !found.holds(at) || !found.readable || !found.writable ||
        found.what == Mapping::What::other || found.holds(frame)) {
      return false;
    }
    char* end = found.to < range.end() ? found.to : range.end();
    // Once for each block: a frame of the file stays the same.
    if (found.what == Mapping::What::plain && prober_ &&
        prober_->is_held({at, size_t(end - at) / page_bytes})) {
      return false;
    }
    // The one advice that does nothing to the contents and is refused to locked memory.
    if (found.what == Mapping::What::plain && madvise(at, size_t(end - at), MADV_COLD) != 0) {
      return false;
    }
    at = end;
  }
  return true;
}

// A longer message into the same buffer: the pages behind the block join it, while there is room.
bool Aliases::grow(Block& block, Range range, bool keep) {
  const size_t pages = size_t(range.end() - block.range.base) / page_bytes;
  if (range.end() <= block.range.end() || pages > block.room) return false;
  const Range more{block.range.end(), pages - block.range.pages};
  for (const Block& other : blocks_) {
    if (&other != &block && overlap(other.range, more)) return false;
  }
  if (!stands(block, block.range) || !is_plain(more)) return false;
  // Where the program has made its mapping longer and moved that on, the rest of the file is taken.
  Mapping found;
  for (const char* from = nullptr; next_mapping(block, from, found); from = found.to) {
    if (found.from < block.range.base || found.to > block.range.end()) return false;
  }
  char* view = block.view + block.range.bytes();
  void* mapping = mremap(view, 0, more.bytes(), MREMAP_MAYMOVE);  // another one of the same pages
  if (mapping == MAP_FAILED) return false;
  if (madvise(mapping, more.bytes(), MADV_DOFORK) != 0 ||
      move_over(static_cast<char*>(mapping), more, view, keep) != Outcome::ok) {
    munmap(mapping, more.bytes());
    return false;
  }
  block.range.pages = pages;
  ++counters.grown;
  return true;
}

Outcome Aliases::make(Range range, bool keep, Taken& out) {
  sweep(4);
  if (!is_plain(range)) return Outcome::refused;
  if (!make_room() || !copy_for_children()) return Outcome::no_memory;
  Block block = {};
  block.range = range;
  block.room = rounded(range.pages);
  const size_t room = block.room * page_bytes;
  const int fd = make_file(room, block.file);
  if (fd < 0) return because_of(errno);
  void* view = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  void* mapping = mmap(nullptr, range.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  Outcome made = Outcome::no_memory;
  if (view != MAP_FAILED && mapping != MAP_FAILED && madvise(view, room, MADV_DONTFORK) == 0) {
    made = move_over(static_cast<char*>(mapping), range, static_cast<char*>(view), keep);
  }
  if (made != Outcome::ok) {
    if (view != MAP_FAILED) munmap(view, room);
    if (mapping != MAP_FAILED) munmap(mapping, range.bytes());
    return made;
  }
  retire_overlapped(range);
  block.view = static_cast<char*>(view);
  block.users = 1;
  block.used = clock_;
  (void)blocks_.push(block);  // make_room() has seen to it
  ++counters.made;
  out = {block.view, block.file, 0};
  return Outcome::ok;
}

void Aliases::retire_overlapped(Range range) {
  for (size_t i = blocks_.size(); i-- > 0;) {
    Block& block = blocks_[i];
    if (block.stale || !overlap(block.range, range)) continue;
    ++counters.replaced;
    block.stale = true;
    if (block.users == 0) drop(i);
  }
}

// What the program has unmapped keeps its pages until its view is gone.
void Aliases::sweep(size_t count) {
  for (; count > 0 && !blocks_.empty(); --count) {
    if (next_swept_ >= blocks_.size()) next_swept_ = 0;
    const Block& block = blocks_[next_swept_];
    Mapping found;
    const bool there = mappings_.find(block.range.base, found) && found.file == block.file;
    if (!there && block.users == 0) {
      drop(next_swept_);
    } else {
      ++next_swept_;
    }
  }
}

bool Aliases::make_room() {
  if (blocks_.size() >= most_blocks) {
    size_t oldest = most_blocks;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].users == 0 &&
          (oldest == most_blocks || blocks_[i].used < blocks_[oldest].used))
        oldest = i;
    }
    if (oldest == most_blocks) return false;
    drop(oldest);
  }
  return blocks_.reserve(most_blocks);
}

void Aliases::drop(size_t index) {
  munmap(blocks_[index].view, blocks_[index].room * page_bytes);
  blocks_.remove_unordered(index);
}

}  // namespace headway::guard
