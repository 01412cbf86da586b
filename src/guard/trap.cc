#include "guard/trap.h"

#include <csignal>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals.h"
#include "base/signals_trap.h"
#include "guard/detail/trapped_call.h"

namespace headway::guard {
namespace {

constexpr uint64_t spin_ns = 100'000;
constexpr int spins_a_yield = 64;                  // the message thread may need this very core
constexpr timespec look_again = {0, 100'000'000};  // for pages that moved

constinit std::atomic<Trap*> started{nullptr};

long futex(std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

// Signals that would end or stop the program do so while it waits. Its own handlers come when it
// has its page: their calls could not be trapped now.
void let_signals_end_it(uint64_t mask) {
  mask |= trap_state.caught.load(std::memory_order_relaxed);
  mask &= ~(base::own_faults | base::signal_bit(SIGSYS));
  (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

}  // namespace

Outcome Trap::start() {
  Trap* nobody = nullptr;
  if (!started.compare_exchange_strong(nobody, this)) return Outcome::refused;
  process_ = getpid();
  bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  Outcome outcome = bell_ < 0 ? Outcome::no_resource : curtain_.start(nullptr);
  if (outcome == Outcome::ok && !base::on_access_fault(on_fault)) outcome = Outcome::refused;
  if (outcome != Outcome::ok) stop();
  return outcome;
}

void Trap::stop() {
  if (started.load() != this) return;
  curtain_.stop();
  base::leave_access_faults(on_fault);
  started.store(nullptr);
  if (bell_ >= 0) ::close(bell_);
  bell_ = -1;
}

Outcome Trap::close(Range range, bool keep, uint8_t* /*scratch*/, char*& view) {
  if (!base::sees_access_faults()) return Outcome::refused;
  const Outcome closed = curtain_.close(range, keep, view);
  if (closed != Outcome::ok) wake();  // whoever touched it meanwhile
  return closed;
}

size_t Trap::open(char* base, const char* view, size_t pages, bool& gone) {
  char* now;
  const size_t opened = curtain_.open(base, view, pages, gone, now);
  if (now) tell(Event::moved, base, now);
  wake();
  return opened;
}

void Trap::forget(Range range) {
  curtain_.forget(range);
  wake();
}

void Trap::give_back(char* view, size_t pages) {
  curtain_.give_back(view, pages);
  wake();
}

void Trap::wake() {
  opens_.fetch_add(1, std::memory_order_seq_cst);  // pairs with let_in
  if (waiters_.load(std::memory_order_seq_cst)) futex(&opens_, FUTEX_WAKE, INT32_MAX, nullptr);
}

void Trap::tell(Event event, char* page, char* to) {
  const base::SpinGuard held(lock_);
  // What does not fit is told when it happens again.
  if (news_count_ < sizeof news_ / sizeof news_[0]) news_[news_count_++] = {event, page, to};
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(bell_, &one, sizeof one);
}

void Trap::serve(Listener& listener) {
  uint64_t rings;
  [[maybe_unused]] const ssize_t n = read(bell_, &rings, sizeof rings);
  News news[sizeof news_ / sizeof news_[0]];
  size_t count;
  {
    const base::SpinGuard held(lock_);
    count = news_count_;
    memcpy(news, news_, count * sizeof(News));
    news_count_ = 0;
  }
  for (size_t i = 0; i < count; ++i) {
    listener.heard(news[i].event, {news[i].page, 1}, news[i].to);
  }
}

bool Trap::on_fault(const void* address, uint64_t mask) {
  Trap* trap = started.load(std::memory_order_acquire);
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) & ~uintptr_t(page_bytes - 1);
  return trap && trap->let_in(reinterpret_cast<char*>(page), mask);
}

bool Trap::let_in(char* page, uint64_t mask) {
  if (getpid() != process_) return curtain_.open_in_child(page);
  for (bool waits = false;; waits = true) {
    const uint32_t seen = opens_.load(std::memory_order_seq_cst);  // pairs with wake
    char* home;
    const Curtain::Found found = curtain_.look(page, home);
    if (found != Curtain::Found::closed) return found == Curtain::Found::open;
    if (!waits) {
      if (home) tell(Event::moved, home, page);
      tell(Event::touched, page, nullptr);
      let_signals_end_it(mask);
    }
    await(seen);
  }
}

void Trap::await(uint32_t seen) {
  const uint64_t spin_until = base::now_ns() + spin_ns;
  for (int spins = 1; opens_.load(std::memory_order_relaxed) == seen; ++spins) {
    base::cpu_relax();
    if (spins % spins_a_yield) continue;
    if (base::now_ns() >= spin_until) break;
    sched_yield();
  }
  waiters_.fetch_add(1, std::memory_order_seq_cst);  // pairs with wake
  futex(&opens_, FUTEX_WAIT, seen, &look_again);
  waiters_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace headway::guard
