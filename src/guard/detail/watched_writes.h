// WatchedWrites: written pages by userfaultfd, which protects them without telling anybody and
// keeps a bit of each write (Linux 6.7), also of writes by system calls and other processes.
// Thread, owner: as Writes says. Invariants: whole mappings are watched, since a mapping of which a
// part is watched could not be moved or grown by the program; its userfaultfd is its own and
// reports no events, so that nobody ever waits for us; what a page's bit says of an earlier time is
// erased before it is followed. Not seen: what a device writes into a page that was pinned after it
// was followed.
#pragma once
#include "guard/detail/descriptor.h"
#include "guard/detail/mappings.h"
#include "guard/detail/page_scan.h"
#include "guard/detail/writes.h"

namespace headway::guard {

class WatchedWrites final : public Writes {
 public:
  WatchedWrites(Mappings& mappings, Stamps& stamps) : mappings_(mappings), stamps_(stamps) {}

  // unsupported: a kernel before 6.8, which is the first that tells pinned pages, too.
  // `thorough`: as for older kernels.
  Outcome start(bool thorough = false);
  // In a forked child (`ours` is false) everything is the parent's.
  void stop(bool ours);

  bool is_held(Range range) override { return descriptor_.is_held(range); }
  bool follow(Range range) override;
  bool collect(Range range, uint32_t stamp, uint64_t& written) override;
  void release(Range range, const Uses& others) override;
  void lose(Range /*range*/) override {}  // whoever is watched still does not feel it
  void yield(Range range) override;
  void regain(Range range) override;
  bool sees_kernel() const { return descriptor_.sees_kernel(); }

 private:
  bool works();
  bool tells_what_is_not_there();
  int count_written(Range range);
  bool watch(const Mapping& mapping);
  void unwatch(Range within, bool whole);
  bool note(Range mapping);

  Mappings& mappings_;
  Stamps& stamps_;
  Descriptor descriptor_;
  PageScan scan_;
  base::Vec<Range> areas_;  // mappings that are watched; neighbours are one
};

}  // namespace headway::guard
