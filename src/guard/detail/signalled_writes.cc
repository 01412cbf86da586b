#include "guard/detail/signalled_writes.h"

#include <atomic>
#include <sched.h>
#include <sys/mman.h>

#include "base/heap.h"
#include "base/signals.h"

namespace headway::guard {
namespace {

// The state of a page: whether it is followed, whether it was written, and above these how many
// handlers are about to make it writable.
constexpr uint16_t followed = 1, dirty = 2, opener = 4;

constinit std::atomic<SignalledWrites*> started{nullptr};
constinit std::atomic<uint32_t> inside{0};  // handlers

bool set_access(Range range, int access) {
  return mprotect(range.base, range.bytes(), access) == 0;
}

}  // namespace

Outcome SignalledWrites::start() {
  SignalledWrites* nobody = nullptr;
  if (!started.compare_exchange_strong(nobody, this)) return Outcome::refused;
  prober_.start_to_probe();
  Outcome outcome = scan_.open();
  if (outcome == Outcome::ok && !base::on_access_fault(on_fault)) outcome = Outcome::refused;
  if (outcome != Outcome::ok) stop(true);
  return outcome;
}

void SignalledWrites::stop(bool ours) {
  if (started.load() != this) return;
  base::leave_access_faults(on_fault);
  started.store(nullptr);
  while (ours && inside.load() != 0) sched_yield();  // one may read the stamps still
  inside.store(0);
  scan_.close();
  prober_.stop();
}

bool SignalledWrites::on_fault(const void* address, uint64_t /*mask*/) {
  inside.fetch_add(1);  // pairs with stop
  SignalledWrites* writes = started.load();
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) & ~uintptr_t(page_bytes - 1);
  const bool ours = writes && writes->let_write(reinterpret_cast<char*>(page));
  inside.fetch_sub(1);
  return ours;
}

// While it is among the openers, nobody calls the page unchanged: whoever makes it writable may
// lose its core before it has said so, and others write meanwhile.
bool SignalledWrites::let_write(char* page) {
  Stamps::State* state = stamps_.state(page);
  if (!state) return false;
  if (!(state->load() & followed)) {
    // Left to itself since the access; else it is the program's affair.
    Mapping now;
    return mappings_.find(page, now) && now.holds(page) && now.writable;
  }
  state->fetch_add(opener);
  const bool writable = set_access({page, 1}, PROT_READ | PROT_WRITE);
  state->fetch_or(dirty);
  state->fetch_sub(opener);
  return writable;
}

bool SignalledWrites::make_writable(Range range) {
  bool some = false;
  for (char* page = range.base; page < range.end(); page += page_bytes) {
    const Stamps::State* state = stamps_.state(page);
    const auto now = state ? state->load() : 0;
    // A dirty one may be protected, if a thread opened it while protect() closed it: its next write
    // would only fault once more, but a system call fails.
    if (now & followed && let_write(page)) some |= !(now & dirty);
  }
  return some;
}

bool SignalledWrites::follow(Range range) {
  // What the handler itself writes to, and system calls of ours, lies there.
  if (base::heap_holds(range.base, range.bytes())) return false;
  Mapping found;
  for (const char* at = range.base; at < range.end(); at = found.to) {
    if (!mappings_.find(at, found) || !found.holds(at) || !found.writable ||
        found.what != Mapping::What::plain) {
      return false;
    }
  }
  for (size_t i = 0; i < range.pages; ++i) {
    stamps_.state(range.base + i * page_bytes)->fetch_or(followed | dirty);
  }
  return base::sees_access_faults();
}

// What is writable, or holds nothing that is its own, is not what was protected.
bool SignalledWrites::note_strangers(Range range) {
  Mapping found;
  for (char* at = range.base; at < range.end(); at = found.to) {
    if (!mappings_.find(at, found) || !found.holds(at) || !found.readable ||
        found.what != Mapping::What::plain) {
      return false;
    }
    const char* end = found.to < range.end() ? found.to : range.end();
    if (found.writable) set_dirty({at, size_t(end - at) / page_bytes});
  }
  struct Dirty final : PageScan::Writes {
    explicit Dirty(SignalledWrites& all) : writes(all) {}
    void written(Range pages) override { writes.set_dirty(pages); }
    SignalledWrites& writes;
  } strangers(*this);
  scan_.tell_strangers(range, strangers);
  return true;
}

void SignalledWrites::set_dirty(Range range) {
  for (size_t i = 0; i < range.pages; ++i) {
    stamps_.state(range.base + i * page_bytes)->fetch_or(dirty);
  }
}

bool SignalledWrites::collect(Range range, uint32_t stamp, uint64_t& written) {
  // The program has a handler of its own over ours.
  if (!base::sees_access_faults()) return false;
  // It may have got the place of memory that the program gave back.
  if (base::heap_holds(range.base, range.bytes())) return false;
  if (!note_strangers(range)) return false;
  for (size_t i = 0, run; i < range.pages; i += run) {
    const auto is_written = [&](size_t page) {
      return stamps_.state(range.base + page * page_bytes)->load() != followed;
    };
    const bool some = is_written(i);
    for (run = 1; i + run < range.pages && is_written(i + run) == some;) ++run;
    if (some && !protect({range.base + i * page_bytes, run}, stamp, written)) return false;
  }
  return true;
}

bool SignalledWrites::protect(Range range, uint32_t stamp, uint64_t& written) {
  // First the note, then the page: a write that comes between is before whoever copies now.
  for (size_t i = 0; i < range.pages; ++i) {
    stamps_.state(range.base + i * page_bytes)->fetch_and(uint16_t(~dirty));
  }
  stamps_.set(range, stamp);
  written += range.pages;
  return set_access(range, PROT_READ);
}

void SignalledWrites::release(Range range, const Uses& others) {
  for (size_t i = 0; i < range.pages; ++i) {
    const Range page{range.base + i * page_bytes, 1};
    if (others.any(page)) continue;
    leave(page);
    stamps_.set(page, Stamps::none);
  }
}

void SignalledWrites::leave(Range range) {
  Mapping found = {};
  for (size_t i = 0; i < range.pages; ++i) {
    char* page = range.base + i * page_bytes;
    Stamps::State* state = stamps_.state(page);
    if (!state || !(state->load() & followed)) continue;
    const bool here = mappings_.find(page, found) && found.holds(page);
    // Accessible before it is nobody's.
    if (here && found.readable && !found.writable && found.what == Mapping::What::plain) {
      (void)set_access({page, 1}, PROT_READ | PROT_WRITE);
    }
    state->fetch_and(uint16_t(~(followed | dirty)));
  }
}

}  // namespace headway::guard
