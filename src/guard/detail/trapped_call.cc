#include "guard/detail/trapped_call.h"

namespace headway::guard {

TrapState trap_state;

}  // namespace headway::guard

#if defined(__x86_64__)
#include <cerrno>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitizer.h"
#include "base/signals_trap.h"
#include "guard/detail/calls.h"
#include "guard/detail/gate.h"
#include "guard/mechanism.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF 0
#define PR_SYS_DISPATCH_ON 1
#endif
#ifndef SYS_USER_DISPATCH
#define SYS_USER_DISPATCH 2
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

namespace headway::guard {
namespace {

constexpr uint64_t trap_bit = base::signal_bit(SIGSYS);
// Signals that nobody may block while pages are closed.
uint64_t unblockable() { return trap_bit | trap_state.touches.load(std::memory_order_relaxed); }

constexpr uint64_t path_bytes = 4096;
constexpr uint64_t below_stack = 136;  // what the gate uses

// How the program goes on.
enum class Way : uint8_t {
  gate,      // the gate makes the call
  leave,     // the gate makes it, and it does not come back
  answered,  // it is done
  settle     // the original instruction makes it, with all pages open
};

class Trapped {
 public:
  Trapped(Pages* pages, ucontext_t* context, uint64_t number)
      : pages_(pages),
        registers_(context->uc_mcontext.gregs),
        mask_(*reinterpret_cast<uint64_t*>(&context->uc_sigmask)),
        number_(number) {}

  void handle();

 private:
  uint64_t argument(size_t i) const {
    constexpr int where[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    return uint64_t(registers_[where[i]]);
  }
  uint64_t stack() const { return uint64_t(registers_[REG_RSP]); }

  Way decide();
  Way decide_special(Special special);
  Way reach(const Pointer& pointer);
  Way reach_vectors(uint64_t at, uint64_t count);
  Way reach_message(uint64_t at);
  Way reach_mask(uint64_t at);
  Way change_memory(uint64_t at, uint64_t n);
  Way change_mask();
  Way change_action();
  Way use_futex();
  Way use_option();
  Way control_descriptor();
  Way control_process();
  Way shrink_break();
  Way map();

  void touch(uint64_t at, uint64_t n);
  bool read(uint64_t at, void* to, size_t n);
  void begin_wait();
  void match();
  void go_through(Way way);
  void run_free(uint32_t seen);
  static bool is_armed();

  Pages* pages_;
  greg_t* registers_;
  uint64_t& mask_;  // the program's, as the return from the handler puts it back
  uint64_t number_;
  bool waited_ = false;
  uint64_t waited_ns_ = 0;
};

void count(std::atomic<uint64_t>& counter, uint64_t n = 1) {
  counter.fetch_add(n, std::memory_order_relaxed);
}

// Signals that would end or stop the program do so while it waits. Its own handlers come later:
// their calls could not be trapped now.
void Trapped::begin_wait() {
  if (waited_) return;
  waited_ = true;
  const uint64_t mask =
      (mask_ | trap_state.caught.load(std::memory_order_relaxed) | trap_bit) & ~base::own_faults;
  (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

// Page by page: what lies between and behind closed ones may not be there at all, and whoever waits
// may touch what it waits for.
void Trapped::touch(uint64_t at, uint64_t n) {
  if (!at || !n) return;
  if (n > ~at) n = ~at;  // nonsense, which the kernel answers
  const uint64_t end = at + n;
  while (at < end && pages_->is_closed(reinterpret_cast<const void*>(at), end - at)) {
    begin_wait();
    const uint64_t next = (at | (page_bytes - 1)) + 1;
    const void* from = reinterpret_cast<const void*>(at);
    const uint64_t here = (next < end ? next : end) - at;
    at += here;
    if (!pages_->is_closed(from, here)) continue;
    const uint64_t start = base::now_ns();
    pages_->await_open(from, here);
    waited_ns_ += base::now_ns() - start;
  }
}

void Trapped::match() {
  if (!pages_->is_unmatched()) return;
  begin_wait();
  const uint64_t start = base::now_ns();
  pages_->await_matched();
  waited_ns_ += base::now_ns() - start;
}

// What an argument points to. Through the kernel, since the address may be nonsense.
bool Trapped::read(uint64_t at, void* to, size_t n) {
  touch(at, n);
  const iovec ours{to, n}, theirs{reinterpret_cast<void*>(at), n};
  return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == ssize_t(n);
}

// It may only linger: then it ends.
bool Trapped::is_armed() {
  uint32_t state = base::calls_armed.load(std::memory_order_acquire);
  if (state == base::lingers) {
    // Before its end: who arms after that looks at what this call has changed.
    trap_state.settled.store(true, std::memory_order_seq_cst);
    trap_state.broken.store(true, std::memory_order_relaxed);
    if (base::calls_armed.compare_exchange_strong(state, base::rests)) return false;
  }
  return state == base::armed;
}

void Trapped::handle() {
  const uint64_t start = base::now_ns();
  const uint32_t seen = trap_state.armings.load(std::memory_order_acquire);
  // Disarmed since it was trapped: nothing is closed. The original instruction makes the call,
  // since the gate is for what has been looked at: a signal return or a new thread has no stack
  // there.
  const bool armed = pages_ && is_armed();
  const Way way = armed ? decide() : Way::settle;
  if (armed && way == Way::settle) {
    begin_wait();
    const uint64_t waits = base::now_ns();
    pages_->await_all();
    waited_ns_ += base::now_ns() - waits;
  }
  count(trap_state.counters.traps);
  count(armed && way == Way::settle ? trap_state.counters.settled
        : waited_                   ? trap_state.counters.waited
                                    : trap_state.counters.passed);
  count(trap_state.counters.nanoseconds, base::now_ns() - start - waited_ns_);
  if (waited_ns_) count(trap_state.counters.waited_nanoseconds, waited_ns_);
  // From here on no call of ours: it would be trapped itself.
  if (way == Way::settle) {
    run_free(seen);
    return;
  }
  go_through(way);
  base::resume_calls();
}

void Trapped::go_through(Way way) {
  if (way == Way::answered) return;
  registers_[REG_RAX] = greg_t(number_);
  if (way == Way::gate) registers_[REG_RCX] = registers_[REG_RIP];
  registers_[REG_RIP] = greg_t(way == Way::gate ? headway_gate_call : headway_gate_leave);
}

void Trapped::run_free(uint32_t seen) {
  registers_[REG_RAX] = greg_t(number_);
  registers_[REG_RIP] -= 2;  // `syscall` and `int $0x80` are as long
  for (;;) {
    trap_state.settled.store(true, std::memory_order_relaxed);
    base::selector.store(base::calls_pass, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Who arms from here on sees us outside, and traps the call again.
    const uint32_t now = trap_state.armings.load(std::memory_order_acquire);
    if (now == seen) return;
    base::pass_calls();
    seen = now;
    Pages* pages = trap_state.pages.load(std::memory_order_acquire);  // of this arming
    if (pages) pages->await_all();
  }
}

Way Trapped::decide() {
  const Call& call = find_call(number_);
  if (call.when == When::settle || pages_->settles()) return Way::settle;
  if (call.when == When::known) match();
  for (const Pointer& pointer : call.pointers) {
    if (pointer.reach == Reach::nothing) break;
    if (reach(pointer) == Way::settle) return Way::settle;
  }
  return call.special == Special::none ? Way::gate : decide_special(call.special);
}

Way Trapped::reach(const Pointer& pointer) {
  const uint64_t at = argument(pointer.at);
  const uint64_t many = argument(pointer.by);
  if (!at) return Way::gate;
  switch (pointer.reach) {
    case Reach::nothing: return Way::gate;
    case Reach::fixed: touch(at, pointer.unit); return Way::gate;
    case Reach::bytes: {
      uint64_t n = 0;
      if (__builtin_mul_overflow(many, uint64_t(pointer.unit), &n)) n = ~uint64_t(0);
      touch(at, n);
      return Way::gate;
    }
    // Its end is not looked for: that costs more than a neighbour's wait, now and then.
    case Reach::path: touch(at, path_bytes); return Way::gate;
    case Reach::sets: touch(at, (uint64_t(uint32_t(many)) + 63) / 64 * 8); return Way::gate;
    case Reach::vectors: return reach_vectors(at, many);
    case Reach::message: return reach_message(at);
    case Reach::messages:
      for (uint64_t i = 0; i < uint64_t(uint32_t(many)) && i < UIO_MAXIOV; ++i) {
        const uint64_t header = at + i * sizeof(mmsghdr);
        touch(header, sizeof(mmsghdr));
        if (reach_message(header) == Way::settle) return Way::settle;
      }
      return Way::gate;
    case Reach::mask: return reach_mask(at);
    case Reach::mask_pair: {
      uint64_t pair[2];
      if (!read(at, pair, sizeof pair)) return Way::settle;
      return pair[0] ? reach_mask(pair[0]) : Way::gate;
    }
  }
  return Way::settle;
}

Way Trapped::reach_vectors(uint64_t at, uint64_t count) {
  if (count > UIO_MAXIOV) return Way::gate;  // the kernel refuses it
  constexpr uint64_t batch = 8;
  while (count > 0) {
    iovec vectors[batch];
    const uint64_t n = count < batch ? count : batch;
    if (!read(at, vectors, n * sizeof(iovec))) return Way::settle;
    for (uint64_t i = 0; i < n; ++i) touch(uint64_t(vectors[i].iov_base), vectors[i].iov_len);
    at += n * sizeof(iovec);
    count -= n;
  }
  return Way::gate;
}

Way Trapped::reach_message(uint64_t at) {
  msghdr message;
  if (!read(at, &message, sizeof message)) return Way::settle;
  touch(uint64_t(message.msg_name), message.msg_namelen);
  touch(uint64_t(message.msg_control), message.msg_controllen);
  return reach_vectors(uint64_t(message.msg_iov), message.msg_iovlen);
}

// A mask for the time of the call: handlers that run meanwhile run with it.
Way Trapped::reach_mask(uint64_t at) {
  uint64_t mask = 0;
  return read(at, &mask, sizeof mask) && !(mask & unblockable()) ? Way::gate : Way::settle;
}

Way Trapped::decide_special(Special special) {
  switch (special) {
    case Special::none: return Way::gate;
    case Special::memory: return change_memory(argument(0), argument(1));
    case Special::move: {
      const Way from = change_memory(argument(0), argument(1));
      const bool placed = argument(3) & MREMAP_FIXED;
      return from == Way::gate && placed ? change_memory(argument(4), argument(2)) : from;
    }
    case Special::map: return map();
    case Special::data_break: return shrink_break();
    case Special::futex: return use_futex();
    case Special::control: {
      const int n = control_bytes(argument(1));
      if (n < 0) return Way::settle;
      touch(argument(2), uint64_t(n));
      return Way::gate;
    }
    case Special::descriptor_control: return control_descriptor();
    case Special::process_control: return control_process();
    case Special::get_option:
    case Special::set_option: return use_option();
    case Special::other_memory: return int(argument(0)) == getpid() ? Way::settle : Way::gate;
    case Special::signal_mask: return change_mask();
    case Special::signal_action: return change_action();
    case Special::signal_return: {
      // The frame is on the stack, where the kernel put it.
      auto* frame = reinterpret_cast<ucontext_t*>(stack());
      auto& mask = *reinterpret_cast<uint64_t*>(&frame->uc_sigmask);
      mask &= ~trap_bit;
      return mask & unblockable() ? Way::settle : Way::leave;
    }
  }
  return Way::settle;
}

// Whatever way of closing pages is in use: it need not follow what happens to closed ones.
Way Trapped::change_memory(uint64_t at, uint64_t n) {
  touch(at, n);
  // The gate keeps its return address there. (Some threads end by unmapping their stack.)
  const bool own_stack = n && at < stack() && at + n > stack() - below_stack;
  return own_stack ? Way::settle : Way::gate;
}

Way Trapped::map() {
  const uint64_t flags = argument(3);
  if (!(flags & MAP_ANONYMOUS) || !(flags & MAP_PRIVATE)) match();
  if (!(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))) return Way::gate;
  return change_memory(argument(0), argument(1));
}

Way Trapped::shrink_break() {
  const uint64_t wish = argument(0);
  const uint64_t now = wish ? uint64_t(syscall(SYS_brk, 0)) : 0;
  return wish && wish < now ? change_memory(wish, now - wish) : Way::gate;
}

Way Trapped::use_futex() {
  const uint64_t operation = argument(1);
  if (!(operation & FUTEX_PRIVATE_FLAG)) match();
  touch(argument(0), 4);
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
    case FUTEX_UNLOCK_PI:
    case FUTEX_TRYLOCK_PI: return Way::gate;
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_LOCK_PI:
    case 13:  // FUTEX_LOCK_PI2
      touch(argument(3), sizeof(timespec));
      return Way::gate;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_CMP_REQUEUE_PI:
    case FUTEX_WAKE_OP: touch(argument(4), 4); return Way::gate;
    default: return Way::settle;
  }
}

Way Trapped::use_option() {
  const int level = int(argument(1)), option = int(argument(2));
  // These hold addresses themselves.
  if (level == SOL_SOCKET && (option == SO_ATTACH_FILTER || option == SO_ATTACH_REUSEPORT_CBPF)) {
    return Way::settle;
  }
  if ((level == IPPROTO_IP || level == IPPROTO_IPV6) && option >= 64) return Way::settle;
  constexpr int tcp_zerocopy_receive = 35;
  if (level == IPPROTO_TCP && option == tcp_zerocopy_receive) return Way::settle;
  if (number_ == SYS_setsockopt) return Way::gate;
  uint32_t n = 0;
  if (!read(argument(4), &n, sizeof n)) return Way::settle;
  touch(argument(3), n);
  return Way::gate;
}

Way Trapped::control_descriptor() {
  switch (argument(1)) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
    case F_GETFD:
    case F_SETFD:
    case F_GETFL:
    case F_SETFL:
    case F_GETOWN:
    case F_SETOWN:
    case F_GETSIG:
    case F_SETSIG:
    case F_GETPIPE_SZ:
    case F_SETPIPE_SZ:
    case F_ADD_SEALS:
    case F_GET_SEALS: return Way::gate;
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW: touch(argument(2), sizeof(struct flock)); return Way::gate;
    case F_GETOWN_EX:
    case F_SETOWN_EX: touch(argument(2), 8); return Way::gate;
    default: return Way::settle;
  }
}

Way Trapped::control_process() {
  switch (argument(0)) {
    case PR_SET_NAME:
    case PR_GET_NAME: touch(argument(1), 16); return Way::gate;
    case PR_SET_VMA: touch(argument(4), 80); return Way::gate;  // malloc names its arenas
    case PR_GET_DUMPABLE:
    case PR_SET_DUMPABLE:
    case PR_GET_TIMERSLACK:
    case PR_SET_TIMERSLACK: return Way::gate;
    default: return Way::settle;
  }
}

// Done here if it would block SIGSYS: everything else of it is blocked.
Way Trapped::change_mask() {
  const auto how = int(argument(0));
  const uint64_t wish = argument(1), old = argument(2);
  touch(old, sizeof(uint64_t));
  uint64_t mask = 0;
  if (!wish || argument(3) != sizeof mask || how == SIG_UNBLOCK) {
    touch(wish, sizeof mask);
    return Way::gate;
  }
  if (!read(wish, &mask, sizeof mask)) return Way::settle;
  if (mask & unblockable() & ~trap_bit) return Way::settle;
  if (!(mask & trap_bit) || (how != SIG_BLOCK && how != SIG_SETMASK)) return Way::gate;
  registers_[REG_RAX] = 0;
  if (old) {
    const iovec ours{&mask_, sizeof mask_}, theirs{reinterpret_cast<void*>(old), sizeof mask_};
    const ssize_t written = process_vm_writev(getpid(), &ours, 1, &theirs, 1, 0);
    if (written != ssize_t(sizeof mask_)) registers_[REG_RAX] = -EFAULT;
  }
  if (how == SIG_BLOCK) mask |= mask_;
  mask_ = mask & ~(trap_bit | base::signal_bit(SIGKILL) | base::signal_bit(SIGSTOP));
  return Way::answered;
}

Way Trapped::change_action() {
  const uint64_t wish = argument(1);
  touch(argument(2), sizeof(base::KernelAction));
  if (!wish) return Way::gate;
  base::KernelAction action{};
  if (!read(wish, &action, sizeof action)) return Way::settle;
  const auto number = int(argument(0));
  const bool ours = number == SIGSYS || number == SIGSEGV || number == SIGBUS;
  // The next arming takes them out of its mask.
  if (ours || (action.mask & unblockable())) return Way::settle;
  if (number >= 1 && number <= 64 && action.handler > uintptr_t(SIG_IGN)) {
    trap_state.caught.fetch_or(base::signal_bit(number), std::memory_order_relaxed);
    trap_state.programs.fetch_or(base::signal_bit(number) & ~base::not_programs,
                                 std::memory_order_relaxed);
  }
  return Way::gate;
}

void on_trap(int number, siginfo_t* info, void* context) {
  const base::Unchecked unchecked;
  const int error = errno;
  auto* interrupted = static_cast<ucontext_t*>(context);
  if (info->si_code != SYS_USER_DISPATCH) {
    base::chain_trap_signal(number, info, context);
    errno = error;
    return;
  }
  base::pass_calls();
  // Null: the dispatch has ended, and nothing is closed.
  Pages* pages = trap_state.pages.load(std::memory_order_acquire);
  // Calls of 32-bit code have other numbers.
  const bool native = info->si_arch == AUDIT_ARCH_X86_64;
  Trapped call(pages, interrupted, native ? uint64_t(unsigned(info->si_syscall)) : uint64_t(-1));
  call.handle();
  errno = error;
}

int dispatch_in_kernel(const void* selector) {
  return prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, headway_gate_begin,
               headway_gate_end - headway_gate_begin, selector);
}

}  // namespace

Outcome start_trap() {
  // An address that cannot be, so that a thread which is enrolled already stays so.
  if (dispatch_in_kernel(reinterpret_cast<void*>(~uintptr_t(0))) == 0 || errno != EFAULT) {
    return errno == EINVAL ? Outcome::unsupported : Outcome::refused;
  }
  return base::take_trap_signal(on_trap, headway_gate_restorer) ? Outcome::ok : Outcome::refused;
}

void stop_trap() { base::give_back_trap_signal(on_trap); }

bool enroll_in_kernel() {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);  // its first byte is the low one
  return dispatch_in_kernel(&base::selector) == 0;
}

void leave_kernel() { (void)prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0); }

bool keep_trap(bool enrolled) {
  // Sixty system calls, each of which costs an enrolled thread half as much again.
  if (enrolled) leave_kernel();
  count(trap_state.counters.looks);
  uint64_t caught = 0, programs = 0;
  bool ours = base::keep_trap_signal(on_trap, unblockable(), caught, programs);
  if (enrolled) ours = enroll_in_kernel() && ours;
  trap_state.caught.store(caught, std::memory_order_relaxed);
  trap_state.programs.store(programs, std::memory_order_relaxed);
  return ours;
}

}  // namespace headway::guard
#endif
