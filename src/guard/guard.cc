#include "guard/guard.h"

#include <cstring>
#include <sched.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/heap.h"
#include "settings/events.h"

namespace headway::guard {
namespace {

char* page_of(const void* address) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(address) & ~uintptr_t(page_bytes - 1));
}

bool is_shut(Page page) { return page == Page::closed || page == Page::mixed; }

// Of a region whose pages have not moved: the first that does not lie before `begin`.
size_t first_page(const Region& region, const char* begin) {
  if (region.places || begin <= region.range.base) return 0;
  if (begin >= region.range.end()) return region.range.pages;
  return size_t(begin - region.range.base) / page_bytes;
}

bool is_complete(const Region& region, size_t page) { return region.got[page] == page_bytes; }

size_t notes_bytes(size_t pages) { return pages * (sizeof(uint16_t) + sizeof(Page)); }

}  // namespace

bool Guard::start(Mechanism* mechanism) {
  if (mappings_.open() != Outcome::ok) return false;
  mechanism_ = mechanism;
  return true;
}

void Guard::stop() {
  mechanism_ = nullptr;
  mappings_.close();
  closed_.store(0, std::memory_order_relaxed);
  mixed_.store(0, std::memory_order_relaxed);
  awaited_.store(nullptr, std::memory_order_relaxed);
  touches_.clear();
}

Range Guard::around(char* from, size_t n) {
  char* first = page_of(from);
  return {first, size_t(page_of(from + n + page_bytes - 1) - first) / page_bytes};
}

// Private, anonymous, of ordinary pages, and no stack of this thread, nor its control block. Locked
// pages cannot be told; closing those fails.
bool Guard::is_plain(Range range) {
  const auto* stack = static_cast<const char*>(__builtin_frame_address(0));
  const auto* control = static_cast<const char*>(__builtin_thread_pointer());
  if (control >= range.base && control < range.end()) return false;
  Mapping found;
  for (const char* at = range.base; at < range.end(); at = found.to) {
    if (!mappings_.find(at, found) || !found.holds(at) || found.what == Mapping::What::other ||
        !found.readable || !found.writable || found.holds(stack)) {
      return false;
    }
  }
  return true;
}

bool Guard::shares_memory(bool (*ours)(const void* start, void* context), void* context) {
  Mapping found;
  for (const char* at = nullptr; mappings_.find_shared(at, found); at = found.to) {
    if (found.what != Mapping::What::curtain && !ours(found.from, context)) return true;
  }
  return false;
}

Region* Guard::close(Range range) { return close(range, false); }
Region* Guard::close_with_contents(Range range) { return close(range, true); }

Region* Guard::close(Range range, bool keep) {
  if (!mechanism_ || !range.pages) return nullptr;
  const base::SpinGuard held(lock_);
  if (Follower* follower = mechanism_->follower()) follower->yield(range);
  Region* region = close_yielded(range, keep);
  if (!region) regained(range, true);
  return region;
}

void Guard::regained(Range range, bool same) {
  if (Follower* follower = mechanism_->follower()) follower->regain(range, same);
}

Region* Guard::close_yielded(Range range, bool keep) {
  if (!is_plain(range)) return ++counters.no_memory, nullptr;
  if (!leave_to_others(range)) return ++counters.overlaps, nullptr;
  Region* region = regions_.take();
  if (!region) return ++counters.refused, nullptr;
  region->range = range;
  region->awaited = range.bytes();
  region->places = nullptr;
  region->view = nullptr;
  region->owner = {};
  region->waited_ns = region->untouched_ns = 0;
  region->touches = 0;
  region->got = static_cast<uint16_t*>(base::heap_allocate(notes_bytes(range.pages)));
  region->home = homes_.add(range.base, range.end(), region->pool_index);
  if (region->got && region->home) {
    region->pages = reinterpret_cast<Page*>(region->got + range.pages);
    const Outcome closed =
        mechanism_->close(range, keep, reinterpret_cast<uint8_t*>(region->pages), region->view);
    if (closed == Outcome::ok) {
      memset(region->got, 0, notes_bytes(range.pages));
      region->closed_at = base::now_ns();
      region->inside_ns = inside_ns(region->closed_at);
      share_until(region->closed_at);
      region->share = share_;
      closed_.fetch_add(1, std::memory_order_release);
      ++counters.closed;
      region->closing = uint32_t(counters.closed.get());
      counters.closed_bytes += range.bytes();
      return region;
    }
  }
  if (region->got) base::heap_free(region->got, notes_bytes(range.pages));
  if (region->home) homes_.remove(region->home);
  regions_.give(region);
  ++counters.refused;
  return nullptr;
}

void Guard::mixed(Region* region) {
  const base::SpinGuard held(lock_);
  for (size_t i = 0; i < region->range.pages; ++i) {
    if (region->got[i] && region->pages[i] == Page::closed) set(region, i, Page::mixed);
  }
}

void Guard::set(Region* region, size_t page, Page state) {
  HEADWAY_CHECK(is_shut(region->pages[page]) &&
                (state != Page::open || is_complete(*region, page)));
  if (region->pages[page] == Page::mixed) mixed_.fetch_sub(1, std::memory_order_release);
  if (state == Page::mixed) mixed_.fetch_add(1, std::memory_order_release);
  region->pages[page] = state;
}

// Open pages of a region that is not over yet may be the program's next buffer: they are no longer
// that region's, or its end would open them. False: some are closed still.
bool Guard::leave_to_others(Range range) {
  for (size_t i = 0; i < range.pages && any_closed(); ++i) {
    const auto [region, page] = find_page(range.base + i * page_bytes);
    if (!region) continue;
    if (is_shut(region->pages[page]) || !note_places(region)) return false;
    // Still watched, dropping it would wait for somebody who reads of that, and needs our lock.
    mechanism_->forget({region->places[page], 1});
    region->places[page] = nullptr;
  }
  return true;
}

bool Guard::arrived(Region* region, size_t offset, size_t n) {
  const base::SpinGuard held(lock_);
  size_t page = offset / page_bytes, inside = offset % page_bytes;
  size_t run = page, length = 0;  // complete pages that are closed still
  HEADWAY_CHECK(n <= region->awaited && offset + n <= region->range.bytes());
  region->awaited -= n;
  for (; n > 0; ++page, inside = 0) {
    const size_t here = page_bytes - inside < n ? page_bytes - inside : n;
    n -= here;
    HEADWAY_CHECK(region->got[page] + here <= page_bytes);
    region->got[page] = uint16_t(region->got[page] + here);
    const bool complete = is_complete(*region, page) && is_shut(region->pages[page]);
    if (complete && length++ == 0) run = page;
    if (length && (!complete || length == batch_pages || n == 0)) {
      open_run(region, run, length);
      length = 0;
    }
  }
  if (region->awaited) return false;
  finish(region);
  return true;
}

void Guard::open_run(Region* region, size_t first, size_t count) {
  const size_t end = first + count;
  while (first < end) {
    // Events that came meanwhile may have taken pages out, or moved some.
    if (!is_shut(region->pages[first])) {
      ++first;
      continue;
    }
    size_t run = 1;
    while (first + run < end && is_shut(region->pages[first + run]) &&
           place(*region, first + run) == place(*region, first) + run * page_bytes) {
      ++run;
    }
    bool gone = false;
    const size_t opened =
        mechanism_->open(place(*region, first), region->view + first * page_bytes, run, gone);
    for (size_t i = 0; i < opened; ++i) {
      waited_for(region, first + i);
      set(region, first + i, Page::open);
    }
    counters.opened += opened;
    first += opened;
    if (opened == run) continue;
    if (gone) {
      lose(region, first++);
    } else {
      mechanism_->serve(*this);  // else it goes on changing for ever
      sched_yield();
    }
  }
}

// Nobody need wait for that page any longer.
void Guard::waited_for(Region* region, size_t page) {
  if (touches_.any()) [[unlikely]]
    touches_.end(region->closing, page, page_bytes);
  char* const awaited = awaited_.load(std::memory_order_relaxed);
  if (!awaited || awaited != place(*region, page)) [[likely]]
    return;
  awaited_.store(nullptr, std::memory_order_relaxed);
  region->waited_ns += base::now_ns() - awaited_since_;
}

void Guard::lose(Region* region, size_t page) {
  waited_for(region, page);
  set(region, page, Page::gone);
  ++counters.gone;
  // Who waits for it reads zeros, as after every MADV_DONTNEED; nothing else would wake him.
  if (place(*region, page)) mechanism_->clear(place(*region, page));
}

void Guard::begin_wait() {
  const base::SpinGuard held(lock_);
  const uint32_t before = inside_.load(std::memory_order_relaxed);
  if (before == 0) inside_since_ = base::now_ns();
  inside_.store(before + 1, std::memory_order_relaxed);
}

void Guard::end_wait() {
  const base::SpinGuard held(lock_);
  HEADWAY_CHECK(is_awaited_inside());
  const uint32_t left = inside_.load(std::memory_order_relaxed) - 1;
  if (left == 0) inside_ns_ += base::now_ns() - inside_since_;
  inside_.store(left, std::memory_order_relaxed);
}

void Guard::finish(Region* region) {
  HEADWAY_CHECK(any_closed() && !memchr(region->pages, int(Page::closed), region->range.pages) &&
                !memchr(region->pages, int(Page::mixed), region->range.pages));
  const uint64_t now = base::now_ns();
  share_until(now);
  ended = {.owner = region->owner,
           .closed_ns = now - region->closed_at,
           .waited_ns = region->waited_ns,
           .inside_ns = inside_ns(now) - region->inside_ns,
           .share_ns = (share_ - region->share) >> share_shift,
           .touches = region->touches};
  counters.closed_ns += ended.closed_ns;
  counters.waited_ns += ended.waited_ns;
  counters.inside_ns += ended.inside_ns;
  const uint64_t waited = ended.waited_ns + ended.inside_ns;
  if (ended.closed_ns > waited) counters.hidden_ns += ended.closed_ns - waited;
  counters.untouched_ns += region->touches ? region->untouched_ns : ended.closed_ns;
  const size_t pages = region->range.pages;
  if (!region->places) {
    mechanism_->forget(region->range);
    regained(region->range, !memchr(region->pages, int(Page::gone), pages));
  } else {
    for (size_t i = 0; i < pages; ++i) {
      if (!region->places[i]) continue;
      mechanism_->forget({region->places[i], 1});
      regained({region->places[i], 1}, false);
    }
    base::heap_free(region->places, pages * sizeof(char*));
  }
  mechanism_->give_back(region->view, pages);
  base::heap_free(region->got, notes_bytes(pages));
  region->home ? homes_.remove(region->home) : moved_.remove(region);
  regions_.give(region);
  closed_.fetch_sub(1, std::memory_order_release);
}

// Before the number of regions changes.
void Guard::share_until(uint64_t now) {
  const uint32_t closed = closed_regions().load(std::memory_order_relaxed);
  if (closed) share_ += ((now - shared_at_) << share_shift) / closed;
  shared_at_ = now;
}

// Region by region, not page by page: a program may ask for all of its memory.
bool Guard::is_closed(const void* from, size_t n) {
  if (!any_closed() || !n) return false;
  const auto at = reinterpret_cast<uintptr_t>(from);
  const char* begin = page_of(from);
  const char* end = reinterpret_cast<const char*>(n < ~at ? at + n : ~uintptr_t(0));
  const base::SpinGuard held(lock_);
  if (!homes_.visit(begin, end, [&](uint32_t, uint32_t index) {
        return !any_shut(*regions_.at(index), begin, end);
      })) {
    return true;
  }
  for (const Region* region = moved_.first(); region; region = region->list_next) {
    if (any_shut(*region, begin, end)) return true;
  }
  return false;
}

bool Guard::any_shut(const Region& region, const char* begin, const char* end) {
  for (size_t i = first_page(region, begin); i < region.range.pages; ++i) {
    const char* page = place(region, i);
    if (!region.places && page >= end) break;
    if (page >= begin && page < end && is_shut(region.pages[i])) return true;
  }
  return false;
}

Guard::Found Guard::find_page(char* address) {
  Region* at_home = nullptr;
  homes_.visit(address, address + page_bytes, [&](uint32_t, uint32_t index) {
    at_home = regions_.at(index);
    return false;
  });
  if (at_home) return {at_home, size_t(address - at_home->range.base) / page_bytes};
  for (Region* region = moved_.first(); region; region = region->list_next) {
    for (size_t i = 0; i < region->range.pages; ++i) {
      if (region->places[i] == address) return {region, i};
    }
  }
  return {nullptr, 0};
}

void Guard::serve() {
  if (!mechanism_) return;
  const base::SpinGuard held(lock_);
  mechanism_->serve(*this);
}

void Guard::heard(Event event, Range range, char* to) {
  for (size_t i = 0; i < range.pages; ++i) {
    char* address = range.base + i * page_bytes;
    const auto [region, page] = find_page(address);
    if (event == Event::touched) {
      ++counters.touched;
      settings::tell<settings::EventKind::page_touched>(address, region ? region->closing : 0);
      // Not closed, and yet somebody waits: it was dropped. Nothing else would ever open it.
      if (!region || !is_shut(region->pages[page])) {
        mechanism_->clear(address);
      } else {
        awaited_.store(address, std::memory_order_relaxed);
        awaited_since_ = base::now_ns();
        touches_.begin(region->closing, page);
        if (region->touches++ == 0) region->untouched_ns = awaited_since_ - region->closed_at;
      }
      continue;
    }
    if (!region) continue;
    if (event == Event::moved) {
      // Without room to note it, the page opens nowhere: its toucher waits, and the job's time-out
      // tells. That takes a system without a page of memory.
      if (note_places(region)) region->places[page] = to + i * page_bytes;
      continue;
    }
    if (is_shut(region->pages[page])) lose(region, page);
    if (event == Event::unmapped && note_places(region)) region->places[page] = nullptr;
  }
}

bool Guard::note_places(Region* region) {
  if (region->places) return true;
  region->places = static_cast<char**>(base::heap_allocate(region->range.pages * sizeof(char*)));
  if (!region->places) return false;
  for (size_t i = 0; i < region->range.pages; ++i) {
    region->places[i] = region->range.base + i * page_bytes;
  }
  homes_.remove(region->home);
  region->home = 0;
  moved_.push_back(region);
  return true;
}

}  // namespace headway::guard
