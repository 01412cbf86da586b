// The program's signals while its system calls are trapped: as without us.
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unwind.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "guard/dispatch.h"
#include "guard/dispatch_test_pages.h"

namespace headway::guard {
namespace {

std::atomic<int> handled{0};
std::atomic<long> handler_result{0};
std::function<void()>* in_handler = nullptr;
sigjmp_buf outside;

void on_signal(int) {
  ++handled;
  if (in_handler) (*in_handler)();
}

class Signals : public Trapped {
 protected:
  void SetUp() override {
    Trapped::SetUp();
    handled = 0;
    in_handler = nullptr;
    thread_ = pthread_self();
  }
  void TearDown() override {
    signal(SIGUSR2, SIG_DFL);
    Trapped::TearDown();
  }
  void handle(int flags, bool full_mask = false) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = flags;
    if (full_mask) sigfillset(&action.sa_mask);
    ASSERT_EQ(sigaction(SIGUSR2, &action, nullptr), 0);
  }
  void signal_after(long ms) {
    after(ms, [this] { pthread_kill(thread_, SIGUSR2); });
  }
  pthread_t thread_;
};

TEST_F(Signals, InterruptACallThatPasses) {
  handle(0);
  close(1, 1);
  signal_after(10);
  char got;
  EXPECT_EQ(read(pipe_[0], &got, 1), -1);
  EXPECT_EQ(errno, EINTR);
  EXPECT_EQ(handled, 1);
  signal_after(10);
  timespec wish{5, 0}, rest{};
  EXPECT_EQ(nanosleep(&wish, &rest), -1);
  EXPECT_EQ(errno, EINTR);
  EXPECT_EQ(rest.tv_sec, 4);
  EXPECT_EQ(handled, 2);
  EXPECT_TRUE(pages_.any_closed());
  open_and_disarm();
}

TEST_F(Signals, RestartACallThatPasses) {
  handle(SA_RESTART);
  std::function<void()> writes = [this] { handler_result = write(pipe_[1], "x", 1); };
  in_handler = &writes;
  close(1, 1);
  signal_after(10);
  char got = 0;
  EXPECT_EQ(read(pipe_[0], &got, 1), 1);
  EXPECT_EQ(got, 'x');
  EXPECT_EQ(handled, 1);
  EXPECT_TRUE(pages_.any_closed());
  open_and_disarm();
}

// A handler's own calls are trapped, too, also where its mask blocks everything.
TEST_F(Signals, CallsInHandlers) {
  for (const bool full_mask : {false, true}) {
    handle(0, full_mask);
    std::function<void()> writes = [this] { handler_result = write(file_, buffer_, buffer_bytes); };
    in_handler = &writes;
    close(1, 1, 20);
    raise(SIGUSR2);
    const Snapshot counted = since();
    open_and_disarm();
    EXPECT_EQ(handler_result, ssize_t(buffer_bytes));
    EXPECT_EQ(counted.settled, 0u);
  }
  EXPECT_EQ(handled, 2);
  struct sigaction now {};
  ASSERT_EQ(sigaction(SIGUSR2, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, on_signal);
  EXPECT_TRUE(sigismember(&now.sa_mask, SIGTERM));
  EXPECT_FALSE(sigismember(&now.sa_mask, SIGSYS));
}

// One that is installed while pages are closed and would block the trap.
TEST_F(Signals, HandlersThatAreInstalledMeanwhile) {
  std::function<void()> writes = [this] { handler_result = write(file_, buffer_, buffer_bytes); };
  in_handler = &writes;
  close(1, 1, 20);
  handle(0);
  EXPECT_EQ(since().settled, 0u);
  raise(SIGUSR2);
  EXPECT_EQ(handler_result, ssize_t(buffer_bytes));
  close(1, 1, 20);
  handle(0, true);
  EXPECT_EQ(since().settled, 1u);
  close(1, 1, 20);
  handler_result = 0;
  raise(SIGUSR2);
  EXPECT_EQ(handler_result, ssize_t(buffer_bytes));
  open_and_disarm();
}

TEST_F(Signals, OnASignalStack) {
  std::vector<char> memory(64 << 10);
  stack_t stack{memory.data(), 0, memory.size()}, old{};
  ASSERT_EQ(sigaltstack(&stack, &old), 0);
  handle(SA_ONSTACK);
  const char* where = nullptr;
  std::function<void()> writes = [&] {
    char here;
    where = &here;
    handler_result = write(file_, buffer_, buffer_bytes);
  };
  in_handler = &writes;
  close(1, 1, 20);
  raise(SIGUSR2);
  stack_t meanwhile{};
  EXPECT_EQ(sigaltstack(nullptr, &meanwhile), 0);
  open_and_disarm();
  ASSERT_EQ(sigaltstack(&old, nullptr), 0);
  EXPECT_EQ(handler_result, ssize_t(buffer_bytes));
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_TRUE(where >= memory.data() && where < memory.data() + memory.size());
#endif
  EXPECT_EQ(meanwhile.ss_flags, 0) << "the program is not on it";
  EXPECT_EQ(meanwhile.ss_sp, memory.data());
}

#if defined(__x86_64__)
// A coroutine's stack has no room for a signal; its program has set a signal stack.
TEST_F(Signals, OnAStackWithoutRoom) {
  std::vector<char> memory(64 << 10);
  stack_t signals{memory.data(), 0, memory.size()}, old{};
  ASSERT_EQ(sigaltstack(&signals, &old), 0);
  auto* stack = static_cast<char*>(
      mmap(nullptr, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(stack, page_bytes, PROT_NONE), 0);
  close(1, 1);
  long result = SYS_getppid;
  asm volatile(
      R"(
      movq %%rsp, %%rbx
      movq %[top], %%rsp
      syscall
      movq %%rbx, %%rsp
      )"
      : "+a"(result)
      : [top] "r"(stack + page_bytes + 256)
      : "rbx", "rcx", "r11", "memory", "cc");
  const Snapshot counted = since();
  open_and_disarm();
  ASSERT_EQ(sigaltstack(&old, nullptr), 0);
  munmap(stack, 2 * page_bytes);
  EXPECT_EQ(result, getppid());
  EXPECT_EQ(counted.passed, 1u);
}
#endif

TEST_F(Signals, EverythingBlocked) {
  handle(0);
  sigset_t all, old, now;
  sigfillset(&all);
  sigemptyset(&old);
  close(1, 1, 20);
  EXPECT_EQ(sigprocmask(SIG_BLOCK, &all, &old), 0);
  EXPECT_TRUE(pages_.any_closed()) << "needs no page";
  raise(SIGUSR2);
  const int while_blocked = handled;
  EXPECT_EQ(write(file_, buffer_, buffer_bytes), ssize_t(buffer_bytes));
  EXPECT_EQ(sigprocmask(SIG_SETMASK, nullptr, &now), 0);
  EXPECT_EQ(sigprocmask(SIG_SETMASK, &old, &all), 0);
  open_and_disarm();
  EXPECT_EQ(while_blocked, 0);
  EXPECT_EQ(handled, 1);
  EXPECT_FALSE(sigismember(&old, SIGUSR2));
  EXPECT_TRUE(sigismember(&now, SIGUSR2));
  EXPECT_TRUE(sigismember(&now, SIGTERM));
  EXPECT_FALSE(sigismember(&now, SIGSYS));
  EXPECT_TRUE(sigismember(&all, SIGUSR2));
  EXPECT_EQ(syscall(SYS_rt_sigprocmask, 77, &all, nullptr, 8), -1);
  EXPECT_EQ(errno, EINVAL);
}

// Blocked before anything is closed: arming takes SIGSYS out.
TEST_F(Signals, EverythingBlockedBefore) {
  sigset_t all, old;
  sigfillset(&all);
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &all, &old), 0);
  close(1, 1, 20);
  EXPECT_EQ(write(file_, buffer_, buffer_bytes), ssize_t(buffer_bytes));
  open_and_disarm();
  EXPECT_EQ(sigprocmask(SIG_SETMASK, &old, nullptr), 0);
}

TEST_F(Signals, MasksForTheTimeOfACall) {
  handle(0);
  sigset_t all, old;
  sigfillset(&all);
  sigemptyset(&old);
  sigaddset(&old, SIGUSR2);
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &old, nullptr), 0);
  sigset_t none;
  sigemptyset(&none);
  close(1, 1);
  signal_after(10);
  EXPECT_EQ(sigsuspend(&none), -1);
  EXPECT_EQ(handled, 1);
  signal_after(10);
  const timespec long_time{5, 0};
  EXPECT_EQ(ppoll(nullptr, 0, &long_time, &none), -1);
  EXPECT_EQ(errno, EINTR);
  EXPECT_EQ(handled, 2);
  EXPECT_TRUE(pages_.any_closed());
  EXPECT_EQ(since().settled, 0u);
  after(10, [this] { pages_.open(); });
  const timespec little{0, 1'000'000};
  EXPECT_EQ(ppoll(nullptr, 0, &little, &all), 0);
  EXPECT_EQ(since().settled, 1u) << "it blocks SIGSYS";
  open_and_disarm();
  ASSERT_EQ(sigprocmask(SIG_UNBLOCK, &old, nullptr), 0);
}

void jump(int) {
  ++handled;
  siglongjmp(outside, 1);
}

TEST_F(Signals, JumpOutOfAHandler) {
  struct sigaction action {};
  action.sa_handler = jump;
  sigfillset(&action.sa_mask);
  ASSERT_EQ(sigaction(SIGUSR2, &action, nullptr), 0);
  close(1, 1);
  for (int i = 0; i < 3; ++i) {
    if (sigsetjmp(outside, 1) == 0) {
      signal_after(5);
      char got;
      (void)!read(pipe_[0], &got, 1);
      ADD_FAILURE() << "not reached";
    }
  }
  EXPECT_EQ(handled, 3);
  EXPECT_TRUE(pages_.any_closed());
  after(10, [this] { pages_.open(); });
  EXPECT_EQ(write(file_, buffer_, buffer_bytes), ssize_t(buffer_bytes));
  sigset_t now;
  EXPECT_EQ(sigprocmask(SIG_SETMASK, nullptr, &now), 0);
  EXPECT_FALSE(sigismember(&now, SIGUSR2));
  open_and_disarm();
}

// Whoever waited for the last page goes on while another thread disarms: the next call is trapped
// still, and seen only when nothing is armed. Its stack must be what it was.
TEST_F(Signals, TrappedWhenNothingIsClosedAnyMore) {
  const auto half_disarmed = [this] {
    Dispatch::pass();
    pages_.open();
    base::calls_armed = 0;
    base::selector = base::calls_trapped;
  };
  handle(0);
  std::function<void()> disarms = half_disarmed;
  in_handler = &disarms;
  close(1, 1);
  raise(SIGUSR2);  // the return from the handler
  EXPECT_EQ(handled, 1);

  bool ran = false;
  close(1, 1);
  half_disarmed();
  std::thread thread([&] { ran = true; });
  thread.join();
  EXPECT_TRUE(ran);

  close(1, 1);
  half_disarmed();
  EXPECT_EQ(system("exit 7"), 7 << 8);

  close(1, 1);
  half_disarmed();
  EXPECT_EQ(write(file_, buffer_, buffer_bytes), ssize_t(buffer_bytes));
}

// After the last page the trap stays until a call comes. Where none does, nothing can have changed
// before the next time; where one does, it is trapped once, and what it changed is found.
TEST_F(Signals, TheTrapLingers) {
  const std::atomic<uint64_t>& looks = dispatch_.counters().looks;
  close(1, 1);
  open_and_disarm();
  uint64_t before = looks;
  for (int i = 0; i < 10; ++i) {
    close(1, 1);
    open_and_disarm();
  }
  EXPECT_EQ(looks, before);

  const Snapshot rest = snapshot();
  for (int i = 0; i < 5; ++i) (void)syscall(SYS_getppid);
  EXPECT_EQ(snapshot().traps, rest.traps + 1);
  EXPECT_EQ(snapshot().passed, rest.passed + 1);

  close(1, 1);
  EXPECT_EQ(looks, ++before);
  open_and_disarm();  // not again at once, where calls come
  for (int i = 0; i < 5; ++i) (void)syscall(SYS_getppid);
  EXPECT_EQ(snapshot().traps, rest.traps + 1);
}

TEST_F(Signals, HandlersThatAreInstalledWhileTheTrapLingers) {
  close(1, 1);
  open_and_disarm();
  handle(0, true);
  std::function<void()> writes = [this] { handler_result = write(file_, buffer_, buffer_bytes); };
  in_handler = &writes;
  close(1, 1, 20);
  raise(SIGUSR2);
  EXPECT_EQ(handler_result, ssize_t(buffer_bytes));
  open_and_disarm();

  // By a handler that has come inside MPI, where nothing is trapped.
  Dispatch::pass();
  handle(0, true);
  handler_result = 0;
  close(1, 1, 20);
  raise(SIGUSR2);
  EXPECT_EQ(handler_result, ssize_t(buffer_bytes));
  open_and_disarm();
}

// Handlers come after a wait for pages; what ends the program does not have to wait.
TEST_F(Signals, WhileItWaits) {
  handle(0);
  close(1, 1, 40);
  std::thread::native_handle_type self = thread_;
  std::atomic<bool> sent{false};
  after(10, [&] {
    pthread_kill(self, SIGUSR2);
    sent = true;
    after(20, [this] { pages_.open(); });
  });
  EXPECT_EQ(write(file_, buffer_, buffer_bytes), ssize_t(buffer_bytes));
  EXPECT_TRUE(sent);
  EXPECT_EQ(handled, 1);
  open_and_disarm();

  const pid_t child = fork();
  if (child == 0) {
    const char* arguments[] = {"dispatch_test", "--gtest_filter=Endless.Wait",
                               "--gtest_also_run_disabled_tests", nullptr};
    setenv("HEADWAY_TEST_ENDLESS", "1", 1);
    execve("/proc/self/exe", const_cast<char**>(arguments), environ);
    _exit(1);
  }
  sleep_ms(500);
  kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

class Endless : public Trapped {};
TEST_F(Endless, Wait) {
  if (!getenv("HEADWAY_TEST_ENDLESS")) GTEST_SKIP() << "a part of Signals.WhileItWaits";
  close(1, 1);
  (void)!write(file_, buffer_, buffer_bytes);
}

_Unwind_Reason_Code count_frame(_Unwind_Context* context, void* count) {
  auto* frames = static_cast<std::vector<uintptr_t>*>(count);
  frames->push_back(_Unwind_GetIP(context));
  return frames->size() < 60 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// Debuggers, profilers, exceptions and thread cancellation look up the stack through the gate.
[[gnu::noinline]] long sleeps(const timespec* time) {
  const long result = syscall(SYS_nanosleep, time, nullptr);
  asm volatile("" ::: "memory");
  return result;
}
TEST_F(Signals, TheStackCanBeReadInAPassingCall) {
  handle(0);
  std::vector<uintptr_t> frames;
  frames.reserve(64);
  std::function<void()> unwinds = [&] { _Unwind_Backtrace(count_frame, &frames); };
  in_handler = &unwinds;
  close(1, 1);
  signal_after(20);
  const timespec time{2, 0};
  EXPECT_EQ(sleeps(&time), -1);
  open_and_disarm();
  bool found = false;
  for (const uintptr_t ip : frames) {
    found |= _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(ip)) ==
             reinterpret_cast<void*>(&sleeps);
  }
  EXPECT_TRUE(found) << frames.size() << " frames";
}

std::atomic<int> own_signals{0};
std::atomic<int> own_code{0};
int own_file = -1;
const char* own_buffer = nullptr;
void own_handler(int, siginfo_t* info, void*) {
  ++own_signals;
  own_code = info->si_code;
  handler_result = write(own_file, own_buffer, buffer_bytes);
}

// The program's handler of SIGSYS gets what is not ours, and its calls are trapped like others.
TEST(Chained, OwnHandlerOfSigsys) {
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer delays signals";
  struct sigaction action {
  }, before{};
  action.sa_sigaction = own_handler;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGSYS, &action, &before), 0);
  FakePages pages;
  Dispatch dispatch;
  const Outcome started = dispatch.start(&pages);
  if (started == Outcome::unsupported) GTEST_SKIP() << "no system call dispatch";
  ASSERT_EQ(started, Outcome::ok);
  ASSERT_TRUE(dispatch.enroll());
  auto* buffer = static_cast<char*>(
      mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  own_buffer = buffer;
  own_file = int(memfd_create("dispatch_test", 0));
  for (int i = 0; i < 1000 && !dispatch.covers_all_threads(); ++i) sleep_ms(1);
  Dispatch::pass();  // as the engine
  ASSERT_TRUE(dispatch.arm());
  Dispatch::resume();
  (void)syscall(SYS_getppid);
  EXPECT_EQ(own_signals, 0);
  const uint64_t traps = dispatch.counters().traps;
  raise(SIGSYS);
  EXPECT_EQ(own_signals, 1);
  EXPECT_EQ(own_code, SI_TKILL);
  EXPECT_EQ(handler_result, ssize_t(buffer_bytes));
  EXPECT_GT(dispatch.counters().traps, traps + 1);
  dispatch.disarm();
  // Taken from us: nothing is armed any more.
  ASSERT_EQ(sigaction(SIGSYS, &action, nullptr), 0);
  EXPECT_FALSE(dispatch.arm());
  dispatch.stop();
  struct sigaction now {};
  ASSERT_EQ(sigaction(SIGSYS, &before, &now), 0);
  EXPECT_EQ(now.sa_sigaction, own_handler);
  close(own_file);
  munmap(buffer, buffer_bytes);
}

}  // namespace
}  // namespace headway::guard
