#include "guard/dispatch.h"

#include "guard/detail/trapped_call.h"

namespace headway::guard {

const TrapCounters& Dispatch::counters() const { return trap_state.counters; }

const std::atomic<uint64_t>& Dispatch::handlers() const { return trap_state.programs; }

}  // namespace headway::guard

#if defined(__x86_64__)
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "base/signals_trap.h"
#include "base/spin_lock.h"

namespace headway::guard {
namespace {

// Threads stay enrolled for as long as they live, whoever uses the dispatch meanwhile.
struct Thread {
  pid_t id = 0;                               // 0: free
  std::atomic<uint32_t>* selector = nullptr;  // null: ours, never trapped
};
constexpr size_t most_threads = 256;
Thread threads[most_threads];
size_t used_threads = 0;  // slots in use lie below it
base::SpinLock threads_lock;
pthread_key_t end_of_thread;
bool have_key = false;
constinit thread_local Thread* me = nullptr;

// Its selector goes away with it.
void forget(void*) {
  Thread* thread = me;
  if (!thread) return;
  if (thread->selector) {
    trap_state.settled.store(true, std::memory_order_relaxed);  // it runs free to its end
    base::pass_calls();
    Pages* pages = trap_state.pages.load(std::memory_order_acquire);
    if (pages && base::calls_armed.load(std::memory_order_acquire) == base::armed) {
      pages->await_all();
    }
    leave_kernel();
  }
  const base::SpinGuard held(threads_lock);
  me = nullptr;
  *thread = {};
}

bool enter(std::atomic<uint32_t>* selector) {
  if (me) return true;
  {
    const base::SpinGuard held(threads_lock);
    for (size_t i = 0; i < most_threads && !me; ++i) {
      if (threads[i].id) continue;
      threads[i] = {gettid(), selector};
      me = &threads[i];
      if (i >= used_threads) used_threads = i + 1;
    }
  }
  if (!me) return false;
  if (pthread_setspecific(end_of_thread, me) == 0 && (!selector || enroll_in_kernel())) return true;
  const base::SpinGuard held(threads_lock);
  *me = {};
  me = nullptr;
  return false;
}

// Open, it is asked in a quarter of the time. The program may close it, and open something else.
class ThreadFolder {
 public:
  void open() {
    if (fd_ < 0) fd_ = ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0 || fstat(fd_, &first_) != 0) first_ = {};
  }
  void close() {
    struct stat now;
    if (fd_ >= 0 && look(now)) ::close(fd_);
    fd_ = -1;
  }
  // The kernel counts a folder for each thread beside the folder's own two.
  size_t threads() const {
    struct stat now;
    const bool found = look(now) || stat(name, &now) == 0;
    return found && now.st_nlink > 2 ? now.st_nlink - 2 : 0;
  }

 private:
  static constexpr const char* name = "/proc/self/task";
  bool look(struct stat& now) const {
    return fstat(fd_, &now) == 0 && now.st_ino == first_.st_ino && now.st_dev == first_.st_dev;
  }
  int fd_ = -1;
  struct stat first_ {};
};
ThreadFolder thread_folder;

// How long not to linger after calls have come while it did.
constexpr uint32_t most_skips = 64;
uint32_t skips = 0, skips_left = 0;

// Field 32 of its statistics: blocked signals, the first 31.
bool blocks_trap(pid_t id) {
  char text[512];
  snprintf(text, sizeof text, "/proc/self/task/%d/stat", int(id));
  const int fd = open(text, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n > 0 ? n : 0] = 0;
  char* field = strrchr(text, ')');  // the name may hold anything
  for (int i = 2; field && i < 32; ++i) field = strchr(field + 1, ' ');
  return !field || (strtoull(field + 1, nullptr, 10) & base::signal_bit(SIGSYS));
}

// Whoever leaves MPI without seeing that we armed is seen by us as outside.
bool order_others() { return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0; }

void set_all(uint32_t from, uint32_t to) {
  const base::SpinGuard held(threads_lock);
  for (size_t i = 0; i < used_threads; ++i) {
    if (!threads[i].selector) continue;
    uint32_t expected = from;
    threads[i].selector->compare_exchange_strong(expected, to, std::memory_order_seq_cst);
  }
}

bool is_alone() {
  const base::SpinGuard held(threads_lock);
  for (size_t i = 0; i < used_threads; ++i) {
    if (threads[i].selector && &threads[i] != me) return false;
  }
  return true;
}

void rest() {
  base::calls_armed.store(base::rests, std::memory_order_seq_cst);
  set_all(base::calls_trapped, base::calls_pass);
}

// A handler that comes inside MPI is not trapped.
bool has_handlers() { return trap_state.programs.load(std::memory_order_relaxed) != 0; }

}  // namespace

Outcome Dispatch::start(Pages* pages, bool by_signal) {
  if (trap_state.pages.load(std::memory_order_relaxed)) return Outcome::internal;
  if (!have_key) {
    // Keys beyond the C library's first block make it allocate.
    constexpr pthread_key_t first_block = 32;
    if (pthread_key_create(&end_of_thread, forget) != 0) return Outcome::no_resource;
    if (end_of_thread >= first_block) {
      pthread_key_delete(end_of_thread);
      return Outcome::no_resource;
    }
    have_key = true;
  }
  const Outcome outcome = start_trap();
  if (outcome != Outcome::ok) return outcome;
  thread_folder.open();
  trap_state.touches.store(by_signal ? base::signal_bit(SIGSEGV) : 0, std::memory_order_relaxed);
  trap_state.pages.store(pages, std::memory_order_release);
  // Where this is refused, order_others() says so.
  (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0);
  started_ = true;
  return Outcome::ok;
}

void Dispatch::stop() {
  if (!started_) return;
  rest();
  // Another thread may be about to trap its calls still: see resume_calls().
  if (is_alone()) stop_trap();
  trap_state.pages.store(nullptr, std::memory_order_release);
  thread_folder.close();
  started_ = false;
}

bool Dispatch::enroll() { return me || (started_ && enter(&base::selector)); }

bool Dispatch::exempt() { return me || (started_ && enter(nullptr)); }

bool Dispatch::covers_all_threads() {
  if (!started_) return false;
  size_t counted = 0;
  for (size_t i = 0; i < most_threads; ++i) {
    Thread thread;
    {
      const base::SpinGuard held(threads_lock);
      if (i >= used_threads) break;
      thread = threads[i];
      const bool other = thread.selector && &threads[i] != me;
      // One that ended without telling must not stand for another. (Ours tell.)
      if (other && syscall(SYS_tgkill, getpid(), thread.id, 0) != 0) threads[i] = thread = {};
    }
    if (!thread.id) continue;
    ++counted;
    if (thread.selector && &threads[i] != me && blocks_trap(thread.id)) return false;
  }
  return counted + base::foreign_threads == thread_folder.threads();
}

bool Dispatch::arm() {
  if (!covers_all_threads()) return false;
  const bool alone = is_alone();
  if (!alone && trap_state.touches.load(std::memory_order_relaxed)) return false;
  const uint32_t state = base::calls_armed.load(std::memory_order_seq_cst);
  // What the program did while it ran free.
  const bool ran_free = trap_state.settled.exchange(false, std::memory_order_seq_cst) ||
                        state == base::rests || (state == base::lingers && has_handlers());
  if (ran_free && !keep_trap(me && me->selector)) {
    trap_state.settled.store(true, std::memory_order_relaxed);
    return false;
  }
  const uint32_t before = base::calls_armed.exchange(base::armed, std::memory_order_seq_cst);
  trap_state.armings.fetch_add(1, std::memory_order_seq_cst);
  if (alone || order_others()) {
    set_all(base::calls_pass, base::calls_trapped);
    // A call that ended the lingering since we looked may have changed anything. A thread that
    // makes another is trapped by now, or has just made it: then it is seen.
    const bool missed =
        !ran_free && (before == base::rests || trap_state.settled.load(std::memory_order_seq_cst));
    if (alone || (!missed && covers_all_threads())) {
      if (!ran_free && before == base::lingers) skips = 0;
      return true;
    }
  }
  if (before != base::armed) rest();
  return false;
}

void Dispatch::disarm() {
  if (trap_state.broken.exchange(false, std::memory_order_relaxed)) {
    skips = skips ? skips * 2 : 1;
    if (skips > most_skips) skips = most_skips;
    skips_left = skips;
  }
  const bool skip = skips_left > 0;
  if (skip) --skips_left;
  if (skip || has_handlers() || trap_state.settled.load(std::memory_order_relaxed)) {
    rest();
  } else {
    uint32_t state = base::armed;
    base::calls_armed.compare_exchange_strong(state, base::lingers);
  }
}

}  // namespace headway::guard

#else

namespace headway::guard {

Outcome Dispatch::start(Pages*, bool) { return Outcome::unsupported; }
void Dispatch::stop() {}
bool Dispatch::enroll() { return false; }
bool Dispatch::exempt() { return false; }
bool Dispatch::covers_all_threads() { return false; }
bool Dispatch::arm() { return false; }
void Dispatch::disarm() {}

}  // namespace headway::guard
#endif
