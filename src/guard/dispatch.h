// Dispatch: traps the program's system calls while pages are closed (Syscall User Dispatch), so
// that one whose pointers reach a closed page waits for that page first. Else the kernel would
// answer EFAULT, or wait itself, with locks held that stall other processes. Costs:
// docs/early-release.md. Thread: arm() and disarm() by the holder of the engine; the trap on
// application threads outside MPI. Owner: the engine, one a process. Invariants: no page is closed
// while a thread of the program is neither enrolled nor ours; what the program's signals and calls
// do is what they would do without, but for the wait.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/outcome.h"
#include "base/selector.h"

namespace headway::guard {

// What the trap asks and waits for. On an application thread outside MPI, in a signal handler on
// the program's stack or signal stack: little stack, no malloc, no stdio; signals with handlers
// wait.
class Pages {
 public:
  virtual bool is_closed(const void* from, size_t n) = 0;
  virtual void await_open(const void* from, size_t n) = 0;  // until no byte of it is closed
  virtual bool is_unmatched() = 0;                          // a released receive has no message yet
  virtual void await_matched() = 0;
  virtual void await_all() = 0;  // until nothing is closed
  // Every call is to wait for all pages: trapping one after the other costs more than it hides.
  virtual bool settles() { return false; }

 protected:
  ~Pages() = default;
};

struct TrapCounters {
  std::atomic<uint64_t> traps{0};        // each is one of the next three
  std::atomic<uint64_t> passed{0};       // calls that reached no closed page
  std::atomic<uint64_t> waited{0};       // for some pages, or for the match
  std::atomic<uint64_t> settled{0};      // for all pages
  std::atomic<uint64_t> nanoseconds{0};  // in the handler without its waits, nor signal delivery
  std::atomic<uint64_t> waited_nanoseconds{0};
  std::atomic<uint64_t> looks{0};  // at the handlers of all signals: 20 µs each
};

class Dispatch {
 public:
  // unsupported: this processor or kernel has none; refused: a sandbox forbids it. `by_signal`: a
  // touch of a closed page is SIGSEGV, which kills a thread that blocks it. So nothing is closed
  // while one does, or while the program has several threads: the masks of the others, which a call
  // may have changed for its time, cannot be seen. Whoever is about to block it waits for all pages
  // first, and handlers do not run with it blocked.
  Outcome start(Pages* pages, bool by_signal = false);
  // Nothing is closed any more. Threads stay enrolled, which costs them 0.1 µs a call.
  void stop();

  // This thread's calls can be trapped from now on. A few ns when it is so already. False: too many
  // threads, or the kernel refuses.
  bool enroll();
  // This thread is ours, and never to be trapped.
  bool exempt();
  // Every thread of the process is enrolled or exempt, and none blocks SIGSYS (a trapped call would
  // kill it). 2 µs, and 13 for each enrolled thread but this one.
  bool covers_all_threads();

  // To be called inside MPI before pages are closed: from now on calls outside MPI are trapped,
  // also those of other threads. False: not all threads are covered, or the program took SIGSYS for
  // itself; no page may be closed then. Also when armed already: threads that settled are free.
  // 2 µs, and 20 for a look at all handlers if the program made a call since the last time.
  bool arm();
  // Nothing is closed any more. Calls may be trapped still: the next one that comes ends that.
  void disarm();
  bool is_armed() const { return base::calls_armed.load(std::memory_order_relaxed) == base::armed; }

  // On an application thread, on entry to MPI and on leaving it.
  static void pass() { base::pass_calls(); }
  static void resume() { base::resume_calls(); }

  // Signals, a bit each, for which the program has handlers that may come inside MPI. True while it
  // is armed.
  const std::atomic<uint64_t>& handlers() const;

  const TrapCounters& counters() const;

 private:
  [[maybe_unused]] bool started_ = false;
};

}  // namespace headway::guard
