// Early release of data with gaps: derived types that are made of few large runs. All pages that
// they reach are closed with their contents; what is not to come, gaps and neighbours included, is
// told at once, so that only pages with bytes of the message stay closed.
#include "base/check.h"
#include "base/machine.h"
#include "datatypes/type.h"
#include "protocols/messages/messages.h"
#include "protocols/release/release.h"

namespace headway::protocols {
namespace {

constexpr uint64_t most_runs = 32;  // looked at one by one
constexpr uint64_t least_run = 3 * guard::page_bytes;
constexpr uint64_t most_gaps = 4;  // closed and opened again: as many bytes as the message, times

}  // namespace

bool Release::is_made_of_runs(const UserMemory& memory, uint64_t total) {
  if (memory.most_runs() > most_runs) return false;
  const UserMemory::Extent extent = memory.extent();
  if (uint64_t(extent.to - extent.from) > (most_gaps + 1) * total) return false;
  // In the order of their addresses, and none over another.
  const char* end = extent.from;
  bool are_large = true;
  memory.for_each_run(0, memory.bytes(), [&](char* at, size_t n) {
    are_large = at >= end && n >= least_run;
    end = at + n;
    return are_large;
  });
  return are_large;
}

bool Release::close_runs(Request* receive, const Request* whole) {
  const UserMemory::Extent extent = receive->memory.extent();
  const guard::Range range =
      guard::Guard::around(const_cast<char*>(extent.from), size_t(extent.to - extent.from));
  if (!is_alone_in(receive, range, whole)) return false;
  // Another thread's stack may lie between the runs.
  guard::Region* region = base::has_one_thread() ? close(receive, range, true) : nullptr;
  Transfer& transfer = messages_.transfer(*receive);
  if (!region) {
    transfer.stays = true;
    return false;
  }
  HEADWAY_CHECK(!receive->is_redirected() && is_in_runs(*receive));
  const uint64_t come = transfer.moved + transfer.partial;
  const char* end = range.base;  // of what is told
  receive->memory.for_each_run(come, transfer.total - come, [&](char* at, size_t n) {
    arrived(region, size_t(end - range.base), size_t(at - end));
    end = at + n;
    return true;
  });
  arrived(region, size_t(end - range.base), size_t(range.end() - end));
  guard_.mixed(region);
  receive->set(Mark::redirected);
  receive->home = receive->memory.base();
  Row& row = rows_.of(*receive);
  row.region = region;
  row.noted = come;
  receive->memory.shift(region->view - range.base);
  // Its user may free it before the last byte has come.
  receive->memory.type()->retain();
  return true;
}

// The memory is the region's view; its last byte ends the region.
void Release::open_runs(Request* receive, uint64_t offset, uint64_t n) {
  guard::Region* region = rows_[*receive].region;
  const char* view = region->view;
  receive->memory.for_each_run(offset, n, [&](char* at, size_t length) {
    arrived(region, size_t(at - view), length);
    return true;
  });
}

}  // namespace headway::protocols
