// SignalledWrites: written pages by mprotect and SIGSEGV, as the prefetching paper has it (section
// 2.2). Only for whoever asks for it, since it can harm a program: a system call that writes into a
// protected page fails (EFAULT), so does a write after mremap has moved one, and a mapping that was
// moved over protected pages looks like those. Thread: as Writes says; let_write() any, in signal
// context. Owner: Versions, one started at a time. Invariant: a page that is writable, or about to
// become so, counts as written at every collect() until it has been protected again.
#pragma once
#include "guard/detail/descriptor.h"
#include "guard/detail/mappings.h"
#include "guard/detail/page_scan.h"
#include "guard/detail/writes.h"

namespace headway::guard {

class SignalledWrites final : public Writes {
 public:
  SignalledWrites(Mappings& mappings, Stamps& stamps) : mappings_(mappings), stamps_(stamps) {}

  Outcome start();
  // After release() of everything. In a forked child (`ours` is false) no other thread is in it.
  void stop(bool ours);

  bool is_held(Range range) override { return prober_.is_held(range); }
  bool follow(Range range) override;
  bool collect(Range range, uint32_t stamp, uint64_t& written) override;
  void release(Range range, const Uses& others) override;
  void lose(Range range) override { leave(range); }
  void yield(Range range) override { leave(range); }
  void regain(Range /*range*/) override {}
  // As if the program wrote to each page. False: none of them would have told of it.
  bool make_writable(Range range);
  bool sees_kernel() const { return prober_.sees_kernel(); }

 private:
  static bool on_fault(const void* address, uint64_t mask);
  bool let_write(char* page);
  bool note_strangers(Range range);
  void set_dirty(Range range);
  bool protect(Range range, uint32_t stamp, uint64_t& written);
  void leave(Range range);

  Mappings& mappings_;
  Stamps& stamps_;
  Descriptor prober_;  // tells what is pinned, where userfaultfd is not refused
  PageScan scan_;
};

}  // namespace headway::guard
