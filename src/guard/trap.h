// Trap: closes pages of aliases by taking the access away, and holds whoever touches one in a
// signal handler until it is open. The mechanism of the early-release paper (sections 2.2 and 2.3),
// for systems that give no userfaultfd. Limits: a system call on a closed page fails (EFAULT); a
// thread that blocks SIGSEGV must not touch one; a program that installs its own handler later
// gets plain receives from then on.
// Thread: as Mechanism says; let_in() any, in signal context. Owner: as Mechanism says, one started
// at a time. Invariant: a page is accessible only when all its data are in the file, and it is
// closed and opened only where the mapping is proven to be the alias.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/spin_lock.h"
#include "base/vec.h"
#include "guard/detail/aliases.h"
#include "guard/mechanism.h"

namespace headway::guard {

class Trap final : public Mechanism {
 public:
  Outcome start();
  void stop();
  static constexpr bool sees_kernel() { return false; }
  const Aliases::Counters& aliases() const { return aliases_.counters; }

  Kind kind() const override { return Kind::trap; }
  Outcome close(Range range, bool keep, uint8_t* scratch, char*& view) override;
  size_t open(char* base, const char* view, size_t pages, bool& gone) override;
  void clear(char* /*page*/) override {}  // the pages are locked: nobody can drop one
  void forget(Range range) override;
  void give_back(char* view, size_t pages) override;
  void serve(Listener& listener) override;
  int descriptor() const override { return bell_; }

 private:
  // `arrived`: complete, and about to be opened, by whoever is first.
  enum class State : uint8_t { closed, arrived, open };
  struct Closed {
    Range range;
    Aliases::Taken alias;
    State* states;
    bool over;  // given back, but for pages that could not be opened
  };
  struct News {
    Event event;
    char* page;
    char* to;
  };
  enum class Found : uint8_t { stranger, closed, open };

  static bool on_fault(const void* address);
  bool let_in(char* page);
  Found look(char* page);
  bool is_our_alias(const char* page, Mapping& out);
  Found look_in_file(char* page, const Mapping& mapping);
  Closed* owner_of_view(const char* view);
  bool open_around(Closed& closed, size_t page);
  bool settle(Closed& closed);
  void settle_leftovers();
  void tell(Event event, char* page, char* to);
  void wake();
  void remove(Closed* closed);

  Descriptor prober_;
  Aliases aliases_;
  base::SpinLock lock_;  // what follows: the handler reads it
  base::Vec<Closed> closed_;
  News news_[64];
  size_t news_count_ = 0;
  std::atomic<uint32_t> opens_{0};  // changes when pages have opened; waited on
  std::atomic<uint32_t> waiters_{0};
  bool leftovers_ = false;  // pages have arrived that could not be opened
  int bell_ = -1;
};

}  // namespace headway::guard
