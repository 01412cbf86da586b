// Trap: closes pages with a curtain that is not accessible, and holds whoever touches it in a
// signal handler until the page is open. The mechanism of the early-release paper (sections 2.2
// and 2.3) without its aliases, for systems that give no userfaultfd. Limits: a system call on a
// closed page fails (EFAULT), and a thread that blocks SIGSEGV must not touch one: the dispatch
// sees to both; a program that installs its own handler later gets plain receives from then on.
// Thread: as Mechanism says; let_in() any, in signal context. Owner: as Mechanism says, one started
// at a time. Invariant: Curtain's.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/spin_lock.h"
#include "guard/detail/curtain.h"
#include "guard/mechanism.h"

namespace headway::guard {

class Trap final : public Mechanism {
 public:
  Outcome start();
  void stop();
  static constexpr bool sees_kernel() { return false; }

  Kind kind() const override { return Kind::trap; }
  Outcome close(Range range, bool keep, uint8_t* scratch, char*& view) override;
  size_t open(char* base, const char* view, size_t pages, bool& gone) override;
  void clear(char* /*page*/) override {}  // nobody waits where no curtain hangs
  void forget(Range range) override;
  void give_back(char* view, size_t pages) override;
  void serve(Listener& listener) override;
  int descriptor() const override { return bell_; }

 private:
  struct News {
    Event event;
    char* page;
    char* to;
  };

  static bool on_fault(const void* address, uint64_t mask);
  bool let_in(char* page, uint64_t mask);
  void await(uint32_t seen);
  void tell(Event event, char* page, char* to);
  void wake();

  Curtain curtain_;
  base::SpinLock lock_;  // the news
  News news_[64];
  size_t news_count_ = 0;
  std::atomic<uint32_t> opens_{0};  // changes when pages have opened; waited on
  std::atomic<uint32_t> waiters_{0};
  int process_ = 0;  // that started it
  int bell_ = -1;
};

}  // namespace headway::guard
