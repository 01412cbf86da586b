// Versions: which pages of the program's memory have been written since some moment. A page gets a
// new version when a look finds that it was written after the look before. Source: section 2.2 of
// the prefetching paper, whose way (mprotect and a signal) is one of two here, and taken only when
// asked for (signalled_writes.h says why); the other one is userfaultfd (watched_writes.h).
// Thread: the holder of the engine. Owner: the engine, beside the guard; it stops before the
// mechanism does. Invariants: a page keeps its version only where the system says of this very page
// that it was followed and not written; all else counts as written: what was unmapped, moved,
// dropped, closed. Versions belong to pages, not to ranges: a look for one user hides nothing from
// another. Nothing here makes a thread of the program wait, or takes memory from malloc.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/counter.h"
#include "base/outcome.h"
#include "guard/detail/mappings.h"
#include "guard/detail/signalled_writes.h"
#include "guard/detail/stamps.h"
#include "guard/detail/watched_writes.h"
#include "guard/detail/writes.h"
#include "guard/mechanism.h"

namespace headway::guard {

class Versions final : Follower {
 public:
  // watch: userfaultfd; signal: mprotect and SIGSEGV. automatic: watch or nothing. thorough: watch,
  // as it is done where the kernel does not tell all.
  enum class Wish : uint8_t { automatic, watch, signal, thorough };

  Versions() : watched_(mappings_, stamps_), signalled_(mappings_, stamps_) {}
  Versions(const Versions&) = delete;
  Versions& operator=(const Versions&) = delete;

  // `mechanism`: what pages are closed with here, or null. Before it closes pages it gets them from
  // us, and we get them back. Not ok: no versions here; why() is a sentence.
  Outcome start(Mechanism* mechanism, Wish wish = Wish::automatic);
  // Before the mechanism stops; also in a forked child, where all belongs to the parent.
  void stop();
  bool active() const { return writes_ != nullptr; }
  const char* why() const { return why_; }
  // use() may be called while other threads are inside system calls with such pages.
  bool sees_kernel() const {
    return writes_ == &watched_ ? watched_.sees_kernel() : signalled_.sees_kernel();
  }

  // Begins to follow writes to the mappings that hold [from, from + n). Counted: each use() that
  // was true needs its drop(), whatever looks have said since. Pages that nobody used before count
  // as written now. False: they cannot be followed (shared, of a file, a stack, pinned, locked,
  // not writable, closed by the guard, or they come and go too often): send plainly.
  // The first time it finds out what is pinned, and moves the pages away and back for that. Better
  // not while another thread may be inside a system call with them, or a peer copies from them:
  // that fails (EFAULT) where userfaultfd sees user mode only.
  bool use(const char* from, size_t n);
  void drop(const char* from, size_t n);
  // Every page of [from, from + n), a part of what was given to use(), that was written since the
  // last look at it gets a new version, and its next write will be seen. Who copies looks first:
  // the other order loses writes. False: it is not followed now (unmapped, mapped anew, moved, not
  // plain memory, closed by the guard): all of it counts as written, and versions mean nothing
  // until the next use(), or a look that is true, as it may be once the guard has opened its pages.
  // It never moves pages.
  bool look(const char* from, size_t n);
  // Where system calls that write into followed memory fail, ours too: makes a part of it writable
  // for such a call, before which no look may come. False: nothing was in its way.
  bool make_writable(const char* from, size_t n) {
    return writes_ == &signalled_ && n && open_for_call(from, n);
  }
  // Of the page that holds `address`, as of the last look; never 0 for followed memory.
  uint32_t version(const char* address) const { return stamps_.at(address); }

  struct Counters {
    base::Counter used;     // ranges
    base::Counter looks;    // at ranges
    base::Counter written;  // pages that looks found written
    base::Counter lost;     // looks at what could not be followed any more
    base::Counter refused;  // ranges that could not be followed
  } counters;

 private:
  Outcome start_one(Wish wish);
  bool open_for_call(const char* from, size_t n);
  bool follow(Range range, bool probes);
  bool follow_run(Range run, bool known);
  bool is_plain(Range range);
  void note_churn();
  void yield(Range range) override;
  void regain(Range range, bool same) override;

  Mappings mappings_;
  Stamps stamps_;
  WatchedWrites watched_;
  SignalledWrites signalled_;
  Writes* writes_ = nullptr;
  Mechanism* mechanism_ = nullptr;
  Uses uses_;
  const char* why_ = "";
  uint32_t moment_ = Stamps::first;  // of the last write or use that was found
  int process_ = 0;                  // that started it
  uint32_t churn_ = 0;
  uint64_t churn_since_ = 0;   // ns
  uint64_t refuse_until_ = 0;  // ns
};

}  // namespace headway::guard
