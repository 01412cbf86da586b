#include "base/signals.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <pthread.h>
#include <ucontext.h>

#include "base/selector.h"

namespace headway::base {
namespace {

constinit std::atomic<AccessHandler> access_handlers[2] = {};
struct sigaction former_handler;  // written before ours is installed
constinit std::atomic<void (*)(int)> dump_handler{nullptr};

// To whom the fault belonged before us. Without a handler the access, tried again, ends the process
// as it would have; a signal that was sent is sent again.
void pass_on(int number, siginfo_t* info, void* context) {
  struct sigaction former = former_handler;
  const bool sent = info->si_code <= 0;
  if (!(former.sa_flags & SA_SIGINFO)) {
    if (former.sa_handler == SIG_IGN && sent) return;
    if (former.sa_handler == SIG_DFL || former.sa_handler == SIG_IGN) {
      sigaction(number, &former, nullptr);
      if (sent) pthread_kill(pthread_self(), number);
      return;
    }
  }
  // As the kernel would have it. Our return puts back the mask of the program.
  const sigset_t& now = static_cast<const ucontext_t*>(context)->uc_sigmask;
  sigset_t mask;
  sigorset(&mask, &now, &former.sa_mask);
  if (!(former.sa_flags & SA_NODEFER)) sigaddset(&mask, number);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if (former.sa_flags & SA_RESETHAND) {
    former_handler.sa_flags &= ~SA_SIGINFO;
    former_handler.sa_handler = SIG_DFL;
  }
  if (former.sa_flags & SA_SIGINFO) {
    former.sa_sigaction(number, info, context);
  } else {
    former.sa_handler(number);
  }
}

// A jump into memory without code is no touch of data.
bool is_fetch([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  constexpr greg_t fetch = 16;
  return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & fetch;
#else
  return false;
#endif
}

void on_fault(int number, siginfo_t* info, void* context) {
  const int error = errno;
  bool ours = false;
  if (info->si_code == SEGV_ACCERR && !is_fetch(context)) {
    const auto* interrupted = static_cast<const ucontext_t*>(context);
    const uint64_t mask = *reinterpret_cast<const uint64_t*>(&interrupted->uc_sigmask);
    // Trapped, its calls would wait for the very page that it opens.
    const OwnCalls pass;
    for (const auto& slot : access_handlers) {
      const AccessHandler handler = slot.load(std::memory_order_acquire);  // pairs with the store
      ours = ours || (handler && handler(info->si_addr, mask));
    }
  }
  errno = error;
  if (!ours) pass_on(number, info, context);
}

}  // namespace

void on_dump_signal(void (*dump)(int)) {
  struct sigaction now {};
  if (sigaction(SIGUSR1, nullptr, &now) != 0) return;
  const bool taken = (now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL;
  if (taken) return;
  struct sigaction ours {};
  ours.sa_handler = dump;
  ours.sa_flags = SA_RESTART;
  dump_handler.store(dump, std::memory_order_relaxed);
  sigaction(SIGUSR1, &ours, nullptr);
}

bool is_dump_handler(const void* handler) {
  return handler == reinterpret_cast<const void*>(dump_handler.load(std::memory_order_relaxed));
}

void on_fork(void (*before)(), void (*child)()) {
  static bool done = false;
  if (done) return;
  done = pthread_atfork(before, nullptr, child) == 0;
}

bool on_access_fault(AccessHandler handler) {
  bool taken = false;
  for (auto& slot : access_handlers) {
    AccessHandler nobody = nullptr;
    taken = taken || slot.compare_exchange_strong(nobody, handler);  // pairs with on_fault
  }
  if (!taken) return false;
  if (sees_access_faults()) return true;
  if (sigaction(SIGSEGV, nullptr, &former_handler) != 0) return false;
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  // The stack of the program may be closed, too: its own signal stack, if it has one, is not.
  // Nor may a touch by whoever interrupts the wait for a page kill the process.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigfillset(&ours.sa_mask);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    sigdelset(&ours.sa_mask, own);
  }
  return sigaction(SIGSEGV, &ours, nullptr) == 0;
}

bool sees_access_faults() {
  struct sigaction now {};
  return sigaction(SIGSEGV, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
         now.sa_sigaction == on_fault;
}

void leave_access_faults(AccessHandler handler) {
  bool others = false;
  for (auto& slot : access_handlers) {
    AccessHandler there = handler;
    others |= !slot.compare_exchange_strong(there, nullptr) && there;  // pairs with on_fault
  }
  if (!others && sees_access_faults()) sigaction(SIGSEGV, &former_handler, nullptr);
}

}  // namespace headway::base
