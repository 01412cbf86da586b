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

bool Engine::is_worth_closing(const Request& receive) const {
  // An eager message on its way is short, and brings no edges first.
  if (receive.stage != Stage::landing || !receive.expected || receive.stays ||
      !receive.memory.is_flat() || receive.outcome != Outcome::ok || receive.cancelling ||
      receive.total < release_from) {
    return false;
  }
  // Bytes in the order of the stream: the edges must be there, and the middle not nearly.
  const uint64_t come = receive.moved + receive.partial;
  return come >= uint64_t(receive.head) + receive.tail && receive.total - come >= page_bytes &&
         expected_us(receive) >= release_us_;
}

uint64_t Engine::expected_us(const Request& receive) const {
  const uint64_t rate = tcp.rate(receive.peer->rank);
  return (receive.total - receive.moved - receive.partial) * 1'000'000 / (rate ? rate : 1);
}

bool Engine::close_now(Request* receive) {
  const uint64_t next = receive->moved + receive->partial - receive->tail;
  const uint64_t end = receive->total - receive->tail;
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
    receive->stays = true;
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
  return true;
}

void Engine::open_pages(Request* receive, uint64_t offset, uint64_t n) {
  if (!n) return;
  char* const base = receive->region->range.base - receive->region_start;
  if (!guard.arrived(receive->region, offset - receive->region_start, n)) return;
  receive->region = nullptr;
  receive->memory = UserMemory(base, receive->memory.bytes());  // a persistent one begins again
}

}  // namespace headway::protocols
