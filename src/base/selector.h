// Selector: the word of this thread that says whether its system calls are trapped. The kernel
// reads its first byte at each call of an enrolled thread (guard/dispatch). Thread: its own, and
// whoever arms. Owner: the thread. Invariant: a thread inside MPI is never trapped; the whole word
// changes at once, so that one that enters and one that arms cannot mix their halves.
#pragma once
#include <atomic>
#include <cstdint>

namespace headway::base {

inline constexpr uint32_t calls_pass = 0;      // the program's, let through
inline constexpr uint32_t calls_trapped = 1;   // the program's, trapped
inline constexpr uint32_t calls_ours = 0x100;  // inside MPI: let through, whoever arms

extern constinit thread_local std::atomic<uint32_t> selector;
// Whether threads outside MPI are trapped. They linger so when nothing is closed any more, until
// the first call: if none comes before the next time, none has to be asked what it changed.
inline constexpr uint32_t rests = 0, armed = 1, lingers = 2;
extern std::atomic<uint32_t> calls_armed;

// On entry to MPI, on an application thread: our own calls are not trapped.
inline void pass_calls() {
  selector.store(calls_ours, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// On leaving: trapped again, if pages are closed, or were.
inline void resume_calls() {
  selector.store(calls_pass, std::memory_order_relaxed);
  // The order of these two holds between threads, too: Dispatch::arm() has the kernel make it so.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (calls_armed.load(std::memory_order_relaxed)) [[unlikely]] {
    selector.store(calls_trapped, std::memory_order_relaxed);
  }
}

// In a signal handler of ours that makes system calls: it may have interrupted the program or MPI.
class OwnCalls {
 public:
  OwnCalls() : inside_(selector.load(std::memory_order_relaxed) == calls_ours) { pass_calls(); }
  ~OwnCalls() {
    if (!inside_) resume_calls();
  }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

 private:
  const bool inside_;
};

}  // namespace headway::base
