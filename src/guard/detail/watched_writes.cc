#include "guard/detail/watched_writes.h"

#include <linux/userfaultfd.h>
#include <sys/mman.h>

namespace headway::guard {
namespace {

constexpr size_t room_pages = 1024;  // somewhere in it, a page table's worth

Range range_of(const Mapping& mapping) {
  return {mapping.from, size_t(mapping.to - mapping.from) / page_bytes};
}

bool is_plain(const Mapping& mapping) {
  return mapping.what == Mapping::What::plain && mapping.writable;
}

bool touch_or_overlap(Range a, Range b) { return a.base <= b.end() && b.base <= a.end(); }

Range both(Range a, Range b) {
  char* base = a.base < b.base ? a.base : b.base;
  const char* end = a.end() > b.end() ? a.end() : b.end();
  return {base, size_t(end - base) / page_bytes};
}

struct Stamper final : PageScan::Writes {
  Stamper(Stamps& all, uint32_t now) : stamps(all), stamp(now) {}
  void written(Range range) override {
    stamps.set(range, stamp);
    pages += range.pages;
  }
  Stamps& stamps;
  uint32_t stamp;
  uint64_t pages = 0;
};

}  // namespace

Outcome WatchedWrites::start(bool thorough) {
  Outcome started = descriptor_.start_to_follow();
  if (started == Outcome::ok) started = scan_.open();
  scan_.set_quick(false);
  if (started == Outcome::ok && !works()) started = Outcome::unsupported;
  if (started == Outcome::ok && !thorough) {
    scan_.set_quick(true);
    scan_.set_quick(works() && tells_what_is_not_there());
  }
  if (started != Outcome::ok) stop(true);
  return started;
}

// -1: it is not known.
int WatchedWrites::count_written(Range range) {
  Stamper stamper(stamps_, Stamps::first);
  const bool known = scan_.take(range, stamper);
  return known ? int(stamper.pages) : -1;
}

// One page: written, unchanged, written again, dropped.
bool WatchedWrites::works() {
  char* page = map_aside(1);
  if (!page) return false;
  const Range range{page, 1};
  *static_cast<volatile char*>(page) = 1;
  bool right = descriptor_.watch(range, UFFDIO_REGISTER_MODE_WP) == Outcome::ok &&
               descriptor_.unprotect(range) && count_written(range) == 1 &&
               count_written(range) == 0;
  if (right) *static_cast<volatile char*>(page) = 2;
  right = right && count_written(range) == 1 && count_written(range) == 0 &&
          madvise(page, page_bytes, MADV_DONTNEED) == 0 && count_written(range) == 1;
  munmap(page, page_bytes);
  return right;
}

// Pages without contents, most of them without a page table, too.
bool WatchedWrites::tells_what_is_not_there() {
  const Range range{map_aside(room_pages), room_pages};
  if (!range.base) return false;
  *static_cast<volatile char*>(range.base) = 1;
  const bool right = descriptor_.watch(range, UFFDIO_REGISTER_MODE_WP) == Outcome::ok &&
                     count_written(range) == int(room_pages) && count_written(range) == 0;
  munmap(range.base, range.bytes());
  return right;
}

void WatchedWrites::stop(bool ours) {
  for (size_t i = areas_.size(); ours && i-- > 0;) unwatch(areas_[i], true);
  areas_.clear();
  scan_.close();
  descriptor_.stop();
}

bool WatchedWrites::follow(Range range) {
  Mapping found;
  for (const char* at = range.base; at < range.end(); at = found.to) {
    if (!mappings_.find(at, found) || !found.holds(at) || !is_plain(found) || !watch(found)) {
      return false;
    }
  }
  return descriptor_.unprotect(range);
}

// Fails where somebody else's userfaultfd is, the guard's with its closed pages, too.
bool WatchedWrites::watch(const Mapping& mapping) {
  const Range range = range_of(mapping);
  const bool known = scan_.is_followed(mapping.from);
  if (!note(range)) return false;
  if (descriptor_.watch(range, UFFDIO_REGISTER_MODE_WP) != Outcome::ok) return false;
  // What was known of these pages was of other memory at this place.
  if (!known) stamps_.forget(range, true);
  return true;
}

bool WatchedWrites::note(Range mapping) {
  for (size_t i = areas_.size(); i-- > 0;) {
    if (!touch_or_overlap(areas_[i], mapping)) continue;
    mapping = both(areas_[i], mapping);
    areas_.remove_unordered(i);
  }
  return areas_.push(mapping);
}

bool WatchedWrites::collect(Range range, uint32_t stamp, uint64_t& written) {
  Stamper stamper(stamps_, stamp);
  const bool known = scan_.take(range, stamper);
  written += stamper.pages;
  return known;
}

void WatchedWrites::release(Range range, const Uses& others) {
  for (size_t i = areas_.size(); i-- > 0;) {
    const Range area = areas_[i];
    if (!overlap(area, range) || others.any(area)) continue;
    unwatch(area, true);
    areas_.remove_unordered(i);
    stamps_.forget(area);
  }
}

// Only what is ours: older kernels would unregister the guard's pages as well. `whole`: also what
// the program has made longer since.
void WatchedWrites::unwatch(Range within, bool whole) {
  Mapping found;
  for (const char* at = within.base; at < within.end() && mappings_.find(at, found);
       at = found.to) {
    if (found.from >= within.end()) break;
    if (!scan_.is_followed(found.from)) continue;
    Range range = range_of(found);
    if (!whole) {
      if (range.base < within.base) range.base = within.base;
      const char* end = found.to < within.end() ? found.to : within.end();
      range.pages = size_t(end - range.base) / page_bytes;
    }
    descriptor_.unwatch(range);
  }
}

void WatchedWrites::yield(Range range) {
  for (const Range& area : areas_) {
    if (!overlap(area, range)) continue;
    unwatch(range, false);
    return;
  }
}

void WatchedWrites::regain(Range range) {
  for (size_t i = 0; i < areas_.size(); ++i) {
    if (!touch_or_overlap(areas_[i], range)) continue;
    Mapping found;
    for (const char* at = range.base; at < range.end() && mappings_.find(at, found);
         at = found.to) {
      if (found.from < range.end() && is_plain(found)) (void)watch(found);
    }
    return;
  }
}

}  // namespace headway::guard
