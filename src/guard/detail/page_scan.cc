#include "guard/detail/page_scan.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace headway::guard {
namespace {

// linux/fs.h of 6.7; older headers do not have it.
struct FoundRegion {
  uint64_t start;
  uint64_t end;
  uint64_t categories;
};
struct ScanRequest {
  uint64_t size;
  uint64_t flags;
  uint64_t start;
  uint64_t end;
  uint64_t walk_end;
  uint64_t regions;
  uint64_t region_count;
  uint64_t max_pages;
  uint64_t inverted;
  uint64_t all_of;
  uint64_t any_of;
  uint64_t wanted;
};
static_assert(sizeof(ScanRequest) == 96);
constexpr unsigned long pagemap_scan = _IOWR('f', 16, ScanRequest);
constexpr uint64_t protect_matching = 1, check_followed = 2;
constexpr uint64_t is_protectable = 1, is_written = 2, is_present = 8, is_swapped = 16;

constexpr size_t most_regions = 64;  // a call

uint64_t number(const char* address) { return reinterpret_cast<uint64_t>(address); }

ScanRequest request(const char* from, const char* to, FoundRegion* regions, size_t count) {
  ScanRequest scan = {};
  scan.size = sizeof scan;
  scan.flags = check_followed;
  scan.start = number(from);
  scan.end = number(to);
  scan.regions = reinterpret_cast<uint64_t>(regions);
  scan.region_count = count;
  scan.all_of = is_protectable;
  scan.wanted = is_written | is_present | is_swapped;
  return scan;
}

bool is_unchanged(uint64_t categories) {
  return (categories & (is_present | is_swapped)) && !(categories & is_written);
}

constexpr size_t block_pages = 256;

// Of a page, as /proc/self/pagemap has it.
bool is_own(uint64_t entry) {
  constexpr uint64_t present = 1ull << 63, swapped = 1ull << 62, of_file = 1ull << 61;
  constexpr uint64_t exclusive = 1ull << 56;
  if (entry & of_file) return false;
  return (entry & swapped) || ((entry & present) && (entry & exclusive));
}

}  // namespace

Outcome PageScan::open() {
  fd_ = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (fd_ >= 0) return Outcome::ok;
  return errno == EMFILE || errno == ENFILE ? Outcome::no_resource : Outcome::refused;
}

void PageScan::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool PageScan::take(Range range, Writes& writes) const {
  return quick_ ? take_written(range, writes) : take_all(range, writes);
}

bool PageScan::take_written(Range range, Writes& writes) const {
  // Nothing is said of a hole in the mapping. This does nothing else than to find one.
  if (msync(range.base, range.bytes(), MS_ASYNC) != 0) return false;
  FoundRegion found[most_regions];
  for (uint64_t at = number(range.base); at < number(range.end());) {
    ScanRequest scan = request(reinterpret_cast<char*>(at), range.end(), found, most_regions);
    scan.flags |= protect_matching;
    scan.all_of = scan.wanted = is_written;
    const int count = ioctl(fd_, pagemap_scan, &scan);
    if (count < 0) return false;
    for (int i = 0; i < count; ++i) {
      const size_t bytes = found[i].end - found[i].start;
      writes.written({reinterpret_cast<char*>(found[i].start), bytes / page_bytes});
    }
    if (scan.walk_end <= at) return false;
    at = scan.walk_end;
  }
  return true;
}

// Each page must be told, and as unchanged: there may be more ways to lose a page than are known.
bool PageScan::take_all(Range range, Writes& writes) const {
  FoundRegion found[most_regions];
  for (const char* at = range.base; at < range.end();) {
    ScanRequest scan = request(at, range.end(), found, most_regions);
    scan.flags |= protect_matching;
    const int count = ioctl(fd_, pagemap_scan, &scan);
    if (count < 0) return false;
    for (int i = 0; i < count; ++i) {
      if (found[i].start != number(at)) return false;
      const size_t bytes = found[i].end - found[i].start;
      if (!is_unchanged(found[i].categories)) {
        writes.written({const_cast<char*>(at), bytes / page_bytes});
      }
      at += bytes;
    }
    if (scan.walk_end != number(at)) return false;
  }
  return true;
}

bool PageScan::is_followed(const char* page) const {
  FoundRegion found;
  ScanRequest scan = request(page, page + page_bytes, &found, 1);
  return ioctl(fd_, pagemap_scan, &scan) == 1;
}

void PageScan::tell_strangers(Range range, Writes& writes) const {
  uint64_t entries[block_pages] = {};
  for (char* at = range.base; at < range.end();) {
    const size_t left = size_t(range.end() - at) / page_bytes;
    const size_t count = left < block_pages ? left : block_pages;
    const size_t bytes = count * sizeof entries[0];
    const bool known = pread(fd_, entries, bytes,
                             off_t(number(at) / page_bytes * sizeof entries[0])) == ssize_t(bytes);
    for (size_t i = 0; i < count; ++i, at += page_bytes) {
      if (!known || !is_own(entries[i])) writes.written({at, 1});
    }
  }
}

}  // namespace headway::guard
