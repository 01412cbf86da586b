// Minor: closes pages of aliases by taking them out of the program's page table under userfaultfd,
// and opens them with UFFDIO_CONTINUE. No copy, and the contents stay; but the memory must become
// an alias first. Thread, owner: as Mechanism says. Invariant: a closed page has its frame in the
// file, and is in no page table but the view's.
#pragma once
#include "guard/detail/aliases.h"
#include "guard/detail/descriptor.h"
#include "guard/mechanism.h"

namespace headway::guard {

class Minor final : public Mechanism {
 public:
  // unsupported: a kernel before 5.18.
  Outcome start();
  void stop();
  bool sees_kernel() const { return descriptor_.sees_kernel(); }
  const Aliases::Counters& aliases() const { return aliases_.counters; }

  Kind kind() const override { return Kind::minor; }
  Outcome close(Range range, bool keep, uint8_t* scratch, char*& view) override;
  size_t open(char* base, const char* view, size_t pages, bool& gone) override;
  void clear(char* page) override;
  void forget(Range range) override { descriptor_.unwatch(range); }
  void give_back(char* view, size_t pages) override;
  void serve(Listener& listener) override { descriptor_.serve(listener); }
  int descriptor() const override { return descriptor_.fd(); }

 private:
  bool is_closed(Range range) const;
  Outcome probe();

  Descriptor descriptor_;
  Aliases aliases_;
  int page_table_ = -1;  // /proc/self/pagemap
};

}  // namespace headway::guard
