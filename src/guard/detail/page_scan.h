// PageScan: what the system knows of pages by /proc/self/pagemap: which ones were written since
// they were last protected (PAGEMAP_SCAN, Linux 6.7). Thread: any. Owner: who follows writes.
// Invariant: a page is called unchanged only where the system says so of this very page; a range
// with a hole, and whatever is not said, is not.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/outcome.h"
#include "guard/mechanism.h"

namespace headway::guard {

class PageScan {
 public:
  class Writes {
   public:
    virtual void written(Range range) = 0;

   protected:
    ~Writes() = default;
  };

  Outcome open();
  void close();
  // A range is asked for its written pages alone, at a fifth of the cost. To be tried first: older
  // kernels leave out pages that were dropped together with their page table.
  void set_quick(bool quick) { quick_ = quick; }
  // Tells what was written since the last time, and protects it again, each page in one step.
  // False: it is not known of all of them, since a part is not followed, or nothing is mapped
  // there; some may have been protected without being told.
  bool take(Range range, Writes& writes) const;
  // Writes to that page are kept for take().
  bool is_followed(const char* page) const;
  // Tells which pages have no contents of their own: dropped, of zeros, shared with another
  // process.
  void tell_strangers(Range range, Writes& writes) const;

 private:
  bool take_all(Range range, Writes& writes) const;
  bool take_written(Range range, Writes& writes) const;

  int fd_ = -1;
  bool quick_ = false;
};

}  // namespace headway::guard
