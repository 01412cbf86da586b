// Early release: a blocking receive returns once its message is matched and the edges of its buffer
// are there; what is still to come lies in closed pages. Source: early-release paper, sections 2.2
// and 2.3; the edges are ours.
#include <cstring>

#include "protocols/engine.h"

namespace headway::protocols {
namespace {

using guard::page_bytes;

uint32_t to_boundary(const char* address) {
  return uint32_t(-reinterpret_cast<uintptr_t>(address) % page_bytes);
}

}  // namespace

// Off where nothing can be closed, where a system call on a closed page would fail, and without a
// message thread: then the plain way is taken.
Outcome Engine::use_guard() {
  if (!settings_.early_release || !handoff.has_thread()) return Outcome::ok;
  if (missing_.start() != Outcome::ok) return Outcome::ok;
  if (!missing_.sees_kernel()) {
    missing_.stop();
    return Outcome::ok;
  }
  guard.start(&missing_);
  release_us_ = settings_.release_threshold_us;
  may_release_ = true;
  return handoff.watch_faults(guard.descriptor());
}

// Asked for whenever a release may follow: they cost a frame each.
void Engine::find_edges(Request* receive, Way way) {
  receive->head = receive->tail = 0;
  if (way != Way::stream || receive->peer->via != Via::tcp || receive->moved || !may_release_ ||
      !receive->memory.is_flat() || receive->total < release_from) {
    return;
  }
  const char* base = receive->memory.flat();
  receive->head = to_boundary(base);
  receive->tail = uint32_t((reinterpret_cast<uintptr_t>(base) + receive->total) % page_bytes);
}

bool Engine::release_now(Request* receive) {
  if (receive->stage != Stage::landing || receive->region || receive->notify ||
      receive->peer->via != Via::tcp || !receive->memory.is_flat() ||
      receive->outcome != Outcome::ok || receive->cancelling || receive->total < release_from) {
    return false;
  }
  // Bytes in the order of the stream: the edges must be there, and the middle not nearly.
  const uint64_t come = receive->moved + receive->partial;
  if (come < uint64_t(receive->head) + receive->tail) return false;
  const uint64_t next = come - receive->tail, end = receive->total - receive->tail;
  const uint64_t rate = tcp.rate(receive->peer->rank);
  if (end - next < page_bytes || (end - next) * 1'000'000 < release_us_ * (rate ? rate : 1)) {
    return false;
  }
  char* base = receive->memory.flat();
  // The page that is filled at this moment is closed with the others; what it has is kept aside.
  const size_t kept = (reinterpret_cast<uintptr_t>(base) + next) % page_bytes;
  char aside[page_bytes];
  char* first = base + next - kept;
  memcpy(aside, first, kept);
  const guard::Range range{first, size_t(base + end - first) / page_bytes};
  guard::Region* region = guard.close(range);
  if (!region) {
    memcpy(first, aside, kept);
    return false;
  }
  receive->region = region;
  receive->region_start = uint64_t(first - base);
  if (kept) {
    memcpy(region->view, aside, kept);
    guard.arrived(region, 0, kept);
  }
  // From here on all that comes is put into the view.
  receive->memory = UserMemory(region->view - receive->region_start, receive->memory.bytes());
  tcp.redirect(receive->peer->rank, receive, region->view - first);
  receive->held_by_user = false;
  ++counters.released;
  return true;
}

void Engine::open_pages(Request* receive, uint64_t offset, uint64_t n) {
  if (n && guard.arrived(receive->region, offset - receive->region_start, n)) {
    receive->region = nullptr;
  }
}

}  // namespace headway::protocols
