// Missing: closes pages by moving them away under userfaultfd, so that pinned ones are refused (by
// dropping them before Linux 6.8), and opens them with UFFDIO_COPY. The memory stays private, and a
// page that is filled too late fails cleanly. The default mechanism.
// Thread, owner: as Mechanism says. Invariant: a closed page has no frame behind it.
#pragma once
#include "guard/detail/descriptor.h"
#include "guard/mechanism.h"

namespace headway::guard {

class Missing final : public Mechanism {
 public:
  Outcome start(bool moves = true) { return descriptor_.start(0, moves); }
  void stop() { descriptor_.stop(); }
  bool sees_kernel() const { return descriptor_.sees_kernel(); }

  Kind kind() const override { return Kind::missing; }
  Outcome close(Range range, bool keep, uint8_t* scratch, char*& view) override;
  size_t open(char* base, const char* view, size_t pages, bool& gone) override;
  void clear(char* page) override;
  void forget(Range range) override { descriptor_.unwatch(range); }
  void give_back(char* view, size_t pages) override;
  void serve(Listener& listener) override { descriptor_.serve(listener); }
  int descriptor() const override { return descriptor_.fd(); }

 private:
  Outcome move_aside(Range range, char* view);
  Outcome drop(Range range, bool keep, uint8_t* scratch, char* view);

  Descriptor descriptor_;
};

}  // namespace headway::guard
