#include "progress/shield.h"

#include <csignal>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals_trap.h"

namespace headway::progress {
namespace {

// 32 and 33 are the C library's, which waits for all threads when one changes its user; SIGSYS
// tells of trapped calls.
constexpr uint64_t not_held_back =
    base::own_faults | base::signal_bit(SIGSYS) | base::signal_bit(32) | base::signal_bit(33);

}  // namespace

Shield::Held Shield::raise() {
  Held held;
  const uint64_t mask = ~not_held_back;
  held.up = syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, &held.before, sizeof mask) == 0;
  held.since = base::now_ns();
  return held;
}

void Shield::lower(const Held& held) {
  if (!held.up) return;
  (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &held.before, nullptr, sizeof held.before);
}

bool Shield::is_awaited(const Held& held) {
  uint64_t pending = 0;
  return syscall(SYS_rt_sigpending, &pending, sizeof pending) == 0 && (pending & ~held.before);
}

}  // namespace headway::progress
