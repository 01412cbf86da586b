#include "base/signals_trap.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/selector.h"
#include "base/signals.h"

namespace headway::base {
namespace {

constexpr uint64_t has_restorer = 0x04000000;  // the kernel's SA_RESTORER
constexpr int last_signal = 64;
KernelAction previous;

// Not the C library's function: that has a restorer of its own and hides two signals.
bool action(int number, const KernelAction* now, KernelAction* old) {
  return syscall(SYS_rt_sigaction, number, now, old, sizeof now->mask) == 0;
}

void set_mask(int how, uint64_t mask) {
  (void)syscall(SYS_rt_sigprocmask, how, &mask, nullptr, sizeof mask);
}

bool is_function(uintptr_t handler) {
  return handler != uintptr_t(SIG_DFL) && handler != uintptr_t(SIG_IGN);
}

}  // namespace

bool take_trap_signal(TrapHandler handler, void (*restorer)()) {
  KernelAction ours{};
  ours.handler = uintptr_t(handler);
  // On the program's signal stack if it has one: who has one may have no room on the other.
  ours.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | has_restorer;
  ours.restorer = uintptr_t(restorer);
  // The program's handlers must not run between our two looks at a lock.
  ours.mask = ~own_faults;
  KernelAction now{};
  if (!action(SIGSYS, nullptr, &now)) return false;
  if (now.handler == ours.handler) return true;  // kept since last time
  previous = now;
  return action(SIGSYS, &ours, nullptr);
}

void give_back_trap_signal(TrapHandler handler) {
  KernelAction now{};
  if (!action(SIGSYS, nullptr, &now) || now.handler != uintptr_t(handler)) return;
  (void)action(SIGSYS, &previous, nullptr);
}

void chain_trap_signal(int number, siginfo_t* info, void* context) {
  {
    const OwnCalls ours;
    const bool forced = info->si_code > 0;  // the kernel does not let these be ignored
    if (previous.handler == uintptr_t(SIG_DFL) || (forced && !is_function(previous.handler))) {
      const KernelAction none{};
      (void)action(number, &none, nullptr);
      (void)syscall(SYS_tgkill, getpid(), gettid(), number);  // takes effect when we return
    }
    if (!is_function(previous.handler)) return;
    uint64_t mask = previous.mask;
    const auto* interrupted = static_cast<const ucontext_t*>(context);
    mask |= *reinterpret_cast<const uint64_t*>(&interrupted->uc_sigmask);
    set_mask(SIG_SETMASK, mask & ~signal_bit(SIGSYS));
  }
  if (previous.flags & SA_SIGINFO) {
    reinterpret_cast<TrapHandler>(previous.handler)(number, info, context);
  } else {
    reinterpret_cast<void (*)(int)>(previous.handler)(number);
  }
}

bool keep_trap_signal(TrapHandler handler, uint64_t unblockable, uint64_t& caught,
                      uint64_t& programs) {
  caught = programs = 0;
  for (int number = 1; number <= last_signal; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    KernelAction now{};
    if (!action(number, nullptr, &now)) continue;
    if (number == SIGSYS) {
      if (now.handler != uintptr_t(handler)) return false;
      continue;
    }
    if (!is_function(now.handler)) continue;
    caught |= signal_bit(number);
    const bool dumps = is_dump_handler(reinterpret_cast<const void*>(now.handler));
    if (!dumps) programs |= signal_bit(number) & ~not_programs;
    if (!(now.mask & unblockable)) continue;
    // A call inside that handler would be trapped with the signal blocked.
    now.mask &= ~unblockable;
    if (!action(number, &now, nullptr)) return false;
  }
  const uint64_t trap = signal_bit(SIGSYS);
  uint64_t before = 0;
  (void)syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &trap, &before, sizeof trap);
  return !(before & unblockable & ~trap);
}

}  // namespace headway::base
