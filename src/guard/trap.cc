#include "guard/trap.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/signals.h"

namespace headway::guard {
namespace {

constexpr uint64_t spin_ns = 100'000;
constexpr int turns_a_yield = 64;                  // the message thread may need this very core
constexpr timespec look_again = {0, 100'000'000};  // for pages that moved

constinit std::atomic<Trap*> started{nullptr};

long futex(std::atomic<uint32_t>* word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

bool set_access(char* from, size_t pages, int access) {
  return mprotect(from, pages * page_bytes, access) == 0;
}

constexpr int read_write = PROT_READ | PROT_WRITE;

}  // namespace

Outcome Trap::start() {
  Trap* nobody = nullptr;
  if (!started.compare_exchange_strong(nobody, this)) return Outcome::refused;
  bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // Where userfaultfd is refused, nothing tells what is pinned.
  prober_.start_to_probe();
  Outcome outcome = bell_ < 0 ? Outcome::no_resource : aliases_.start(&prober_);
  if (outcome == Outcome::ok && !base::on_access_fault(on_fault)) outcome = Outcome::refused;
  if (outcome != Outcome::ok) stop();
  return outcome;
}

void Trap::stop() {
  if (started.load() != this) return;
  base::leave_access_faults(on_fault);
  started.store(nullptr);
  aliases_.stop();
  prober_.stop();
  if (bell_ >= 0) ::close(bell_);
  bell_ = -1;
}

Outcome Trap::close(Range range, bool keep, uint8_t* /*scratch*/, char*& view) {
  if (!base::sees_access_faults()) return Outcome::refused;
  settle_leftovers();
  Closed closed = {};
  closed.range = range;
  closed.states = static_cast<State*>(base::heap_allocate(range.pages));
  if (!closed.states) return Outcome::no_memory;
  memset(closed.states, int(State::closed), range.pages);
  Outcome outcome = aliases_.take(range, keep, closed.alias);
  if (outcome == Outcome::ok) {
    // Known before it is closed: a touch asks at once.
    const base::SpinGuard held(lock_);
    if (!closed_.push(closed)) {
      aliases_.give(closed.alias.view);
      outcome = Outcome::no_memory;
    }
  }
  if (outcome != Outcome::ok) {
    base::heap_free(closed.states, range.pages);
    return outcome;
  }
  if (!set_access(range.base, range.pages, PROT_NONE)) {
    const base::SpinGuard held(lock_);
    (void)set_access(range.base, range.pages, read_write);  // some may be closed
    remove(&closed_.back());
    return Outcome::no_memory;
  }
  view = closed.alias.view;
  return Outcome::ok;
}

size_t Trap::open(char* base, const char* view, size_t pages, bool& gone) {
  gone = false;
  const base::SpinGuard held(lock_);
  Closed* closed = owner_of_view(view);
  if (!closed) {
    gone = true;
    return 0;
  }
  const size_t first = size_t(view - closed->alias.view) / page_bytes;
  const uint64_t offset = closed->alias.offset + first * page_bytes;
  const size_t here = aliases_.mappings().showing(base, pages, closed->alias.file, offset);
  if (here == 0) {
    char* now = aliases_.moved_to(view);
    gone = !now;
    if (now) tell(Event::moved, base, now);
    if (gone) closed->states[first] = State::open;  // who waits there waits for nothing
  } else {
    // It fails where the program has as many mappings as it may. Then it is tried again with the
    // pages that come later: in the end there are fewer mappings, not more.
    const bool opened = set_access(base, here, read_write);
    memset(closed->states + first, int(opened ? State::open : State::arrived), here);
    if (!opened) leftovers_ = true;
    if (opened && leftovers_) (void)settle(*closed);
  }
  wake();
  return here;
}

// Opens the page and all beside it that have arrived.
bool Trap::open_around(Closed& closed, size_t page) {
  size_t first = page, last = page + 1;
  while (first > 0 && closed.states[first - 1] == State::arrived) --first;
  while (last < closed.range.pages && closed.states[last] == State::arrived) ++last;
  char* from = closed.range.base + first * page_bytes;
  const uint64_t offset = closed.alias.offset + first * page_bytes;
  const size_t run = last - first;
  // Elsewhere by now, or nowhere: look() sees to those that somebody touches.
  const bool here = aliases_.mappings().showing(from, run, closed.alias.file, offset) == run;
  if (here && !set_access(from, run, read_write)) return false;
  memset(closed.states + first, int(State::open), run);
  return true;
}

bool Trap::settle(Closed& closed) {
  bool all = true;
  for (size_t i = 0; i < closed.range.pages; ++i) {
    if (closed.states[i] == State::arrived) all &= open_around(closed, i);
  }
  return all;
}

void Trap::settle_leftovers() {
  const base::SpinGuard held(lock_);
  for (size_t i = closed_.size(); i-- > 0;) {
    if (closed_[i].over && settle(closed_[i])) remove(&closed_[i]);
  }
}

void Trap::forget(Range range) {
  const base::SpinGuard held(lock_);
  for (Closed& closed : closed_) {
    if (range.base < closed.range.end() && closed.range.base < range.end()) (void)settle(closed);
  }
  wake();
}

void Trap::give_back(char* view, size_t pages) {
  const base::SpinGuard held(lock_);
  for (Closed& closed : closed_) {
    if (closed.over || closed.alias.view != view || closed.range.pages != pages) continue;
    closed.over = true;
    if (settle(closed)) remove(&closed);
    break;
  }
  wake();
}

void Trap::remove(Closed* closed) {
  aliases_.give(closed->alias.view);
  base::heap_free(closed->states, closed->range.pages);
  closed_.remove_unordered(size_t(closed - closed_.begin()));
}

void Trap::wake() {
  opens_.fetch_add(1, std::memory_order_seq_cst);  // pairs with let_in
  if (waiters_.load(std::memory_order_seq_cst)) futex(&opens_, FUTEX_WAKE, INT32_MAX, nullptr);
}

void Trap::tell(Event event, char* page, char* to) {
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

bool Trap::on_fault(const void* address) {
  Trap* trap = started.load(std::memory_order_acquire);
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) & ~uintptr_t(page_bytes - 1);
  return trap && trap->let_in(reinterpret_cast<char*>(page));
}

bool Trap::let_in(char* page) {
  uint64_t spin_until = 0;
  for (;;) {
    const uint32_t seen = opens_.load(std::memory_order_seq_cst);  // pairs with wake
    const Found found = look(page);
    if (found != Found::closed) return found == Found::open;
    if (spin_until == 0) {
      spin_until = base::now_ns() + spin_ns;
      const base::SpinGuard held(lock_);
      tell(Event::touched, page, nullptr);
    }
    for (int turns = 1; opens_.load(std::memory_order_relaxed) == seen; ++turns) {
      base::cpu_relax();
      if (turns % turns_a_yield) continue;
      if (base::now_ns() >= spin_until) break;
      sched_yield();
    }
    waiters_.fetch_add(1, std::memory_order_seq_cst);  // pairs with wake
    futex(&opens_, FUTEX_WAIT, seen, &look_again);
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }
}

// What counts is the page of the file, not the address: it may have moved here, and another away.
Trap::Found Trap::look(char* page) {
  Mapping mapping;
  if (!is_our_alias(page, mapping)) return Found::stranger;
  if (mapping.writable) return Found::open;
  if (const Found found = look_in_file(page, mapping); found != Found::stranger) return found;
  // Opened meanwhile, and its range is over; or protected by the program itself.
  return is_our_alias(page, mapping) && mapping.writable ? Found::open : Found::stranger;
}

bool Trap::is_our_alias(const char* page, Mapping& out) {
  return aliases_.mappings().find(page, out) && out.holds(page) && out.what == Mapping::What::alias;
}

Trap::Found Trap::look_in_file(char* page, const Mapping& mapping) {
  const base::SpinGuard held(lock_);
  const uint64_t offset = mapping.offset_of(page);
  bool ours = false;
  for (Closed& closed : closed_) {
    if (!(closed.alias.file == mapping.file) || offset < closed.alias.offset ||
        offset - closed.alias.offset >= closed.range.bytes()) {
      continue;
    }
    ours = true;
    const size_t which = (offset - closed.alias.offset) / page_bytes;
    if (closed.states[which] == State::open) continue;  // of an older one
    char* home = closed.range.base + which * page_bytes;
    if (closed.states[which] == State::arrived) {
      // Whoever was to open it lost its core, or there was no mapping left for it.
      const bool opened =
          home == page ? open_around(closed, which) : set_access(page, 1, read_write);
      return opened ? Found::open : Found::closed;
    }
    if (home != page) tell(Event::moved, home, page);
    return Found::closed;
  }
  if (!ours) return Found::stranger;
  return set_access(page, 1, read_write) ? Found::open : Found::closed;
}

Trap::Closed* Trap::owner_of_view(const char* view) {
  for (Closed& closed : closed_) {
    if (view < closed.alias.view || view >= closed.alias.view + closed.range.bytes()) continue;
    if (closed.states[size_t(view - closed.alias.view) / page_bytes] != State::open) return &closed;
  }
  return nullptr;
}

}  // namespace headway::guard
