// Minor: closes pages with a curtain of shared memory that userfaultfd watches. Nothing of it is
// better than Missing where that works; it is there to be compared, and for memory whose pages
// UFFDIO_MOVE refuses. Thread, owner: as Mechanism says. Invariant: Curtain's.
#pragma once
#include "guard/detail/curtain.h"
#include "guard/detail/descriptor.h"
#include "guard/mechanism.h"

namespace headway::guard {

class Minor final : public Mechanism {
 public:
  // unsupported: a kernel before 5.18.
  Outcome start();
  void stop();
  bool sees_kernel() const { return descriptor_.sees_kernel(); }

  Kind kind() const override { return Kind::minor; }
  Outcome close(Range range, bool keep, uint8_t* scratch, char*& view) override;
  size_t open(char* base, const char* view, size_t pages, bool& gone) override;
  void clear(char* page) override;
  void forget(Range range) override;
  void give_back(char* view, size_t pages) override;
  void serve(Listener& listener) override { descriptor_.serve(listener); }
  int descriptor() const override { return descriptor_.fd(); }

 private:
  void wake(Range range) const;

  Descriptor descriptor_;
  Curtain curtain_;
};

}  // namespace headway::guard
