// System calls on closed pages: full counts where the kernel alone would answer EFAULT, everything
// else as without us. Pages of the test are closed by mprotect; a helper thread opens them later.
#include "guard/dispatch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "guard/guard.h"
#include "guard/missing.h"

namespace headway::guard {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitizer = true;
#else
constexpr bool thread_sanitizer = false;
#endif

constexpr size_t buffer_pages = 4, buffer_bytes = buffer_pages * page_bytes;

void sleep_ms(long n) {
  timespec t{n / 1000, n % 1000 * 1'000'000};
  nanosleep(&t, nullptr);
}

// Closed pages of the test. As the engine's, its functions may be called in a signal handler.
class FakePages final : public Pages {
 public:
  bool is_closed(const void* from, size_t n) override {
    const auto at = reinterpret_cast<uintptr_t>(from);
    const uintptr_t begin = begin_.load(), end = end_.load();
    return begin < end && at < end && begin < at + n;
  }
  void await_open(const void* from, size_t n) override {
    ++opens;
    wait([&] { return !is_closed(from, n); });
  }
  bool is_unmatched() override { return unmatched.load(); }
  void await_matched() override {
    ++matches;
    wait([&] { return !unmatched.load(); });
  }
  void await_all() override {
    ++alls;
    wait([&] { return begin_.load() >= end_.load(); });
  }

  void close(char* from, size_t n) {
    ASSERT_EQ(mprotect(from, n, PROT_NONE), 0);
    end_ = reinterpret_cast<uintptr_t>(from) + n;
    begin_ = reinterpret_cast<uintptr_t>(from);
  }
  void open() {
    unmatched = false;
    const uintptr_t begin = begin_, end = end_;
    if (begin >= end) return;
    mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE);
    begin_ = end;
  }
  bool any_closed() const { return begin_.load() < end_.load(); }

  std::atomic<bool> unmatched{false};
  std::atomic<int> opens{0}, matches{0}, alls{0};

 private:
  template <typename Done>
  void wait(Done done) {
    for (int i = 0; !done(); ++i) {
      if (i > 10'000) abort();  // nobody opens
      sleep_ms(1);
    }
  }
  std::atomic<uintptr_t> begin_{1}, end_{1};
};

class Trapped : public testing::Test {
 protected:
  void SetUp() override {
    if (thread_sanitizer) {
      GTEST_SKIP() << "ThreadSanitizer has a thread of its own, so nothing is ever armed";
    }
    const Outcome started = dispatch_.start(&pages_);
    if (started == Outcome::unsupported || started == Outcome::refused) {
      GTEST_SKIP() << "this system has no system call dispatch";
    }
    ASSERT_EQ(started, Outcome::ok);
    ASSERT_TRUE(dispatch_.enroll());
    buffer_ = static_cast<char*>(
        mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < buffer_bytes; ++i) buffer_[i] = char(i * 7 + (i >> 8));
    ASSERT_EQ(pipe(pipe_), 0);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, socket_), 0);
    file_ = int(memfd_create("dispatch_test", 0));
    // Made before anything is closed: making a thread settles.
    std::atomic<bool> ready{false};
    helper_ = std::thread([this, &ready] {
      ready = dispatch_.exempt();
      while (!over_) {
        const uint64_t due = due_;
        if (due && base::now_ns() >= due) {
          due_ = 0;
          on_due_();
        }
        sleep_ms(1);
      }
    });
    while (!ready) sleep_ms(1);
    begin_ = snapshot();
  }
  void TearDown() override {
    if (!helper_.joinable()) return;
    open_and_disarm();
    over_ = true;
    helper_.join();
    dispatch_.stop();
    munmap(buffer_, buffer_bytes);
    for (const int fd : {pipe_[0], pipe_[1], socket_[0], socket_[1], file_}) ::close(fd);
  }

  // Closes and traps. The pages open `ms` later, if that is not 0.
  void close(size_t first, size_t count, long ms = 0) {
    Dispatch::pass();  // as the engine
    ASSERT_TRUE(arm());
    pages_.close(buffer_ + first * page_bytes, count * page_bytes);
    after(ms, [this] { pages_.open(); });
    Dispatch::resume();
  }
  // The kernel counts a thread for a moment after it has been joined.
  bool arm() {
    for (int i = 0; i < 1000; ++i) {
      if (dispatch_.arm()) return true;
      sleep_ms(1);
    }
    return false;
  }
  void after(long ms, std::function<void()> what) {
    on_due_ = std::move(what);
    if (ms) due_ = base::now_ns() + uint64_t(ms) * 1'000'000;
  }
  // As the engine, inside MPI.
  void open_and_disarm() {
    Dispatch::pass();
    due_ = 0;
    pages_.open();
    dispatch_.disarm();
    Dispatch::resume();
  }

  struct Snapshot {
    uint64_t traps, passed, waited, settled;
  };
  Snapshot snapshot() const {
    const TrapCounters& c = dispatch_.counters();
    return {c.traps, c.passed, c.waited, c.settled};
  }
  Snapshot since() const {
    const Snapshot now = snapshot();
    return {now.traps - begin_.traps, now.passed - begin_.passed, now.waited - begin_.waited,
            now.settled - begin_.settled};
  }
  char byte(size_t i) const { return char(i * 7 + (i >> 8)); }

  FakePages pages_;
  Dispatch dispatch_;
  char* buffer_ = nullptr;
  int pipe_[2] = {-1, -1}, socket_[2] = {-1, -1}, file_ = -1;
  std::thread helper_;
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> due_{0};
  std::function<void()> on_due_;
  Snapshot begin_{};
};

// What the other tests are worth: without the trap they fail so.
TEST_F(Trapped, WithoutTheTrapTheKernelRefuses) {
  pages_.close(buffer_ + page_bytes, page_bytes);
  EXPECT_EQ(write(file_, buffer_ + page_bytes, page_bytes), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(write(file_, buffer_, buffer_bytes), ssize_t(page_bytes)) << "short";
}

// ------------------------------------------------------------------------- pointers to closed
// pages

struct Files {
  int* pipe;
  int* socket;
  int file;
};
struct Operation {
  const char* name;
  // Puts `from` where the operation gets its data, or does nothing.
  std::function<void(const Files&, const char* from)> before;
  std::function<ssize_t(const Files&, char* buffer)> run;
  // Gets what it wrote, or nothing.
  std::function<void(const Files&, char* to)> after;
};

void fill_file(const Files& f, const char* from) {
  ASSERT_EQ(pwrite(f.file, from, buffer_bytes, 0), ssize_t(buffer_bytes));
}
void fill_pipe(const Files& f, const char* from) {
  ASSERT_EQ(write(f.pipe[1], from, buffer_bytes), ssize_t(buffer_bytes));
}
void fill_socket(const Files& f, const char* from) {
  ASSERT_EQ(send(f.socket[1], from, buffer_bytes, 0), ssize_t(buffer_bytes));
}
void from_file(const Files& f, char* to) {
  ASSERT_EQ(pread(f.file, to, buffer_bytes, 0), ssize_t(buffer_bytes));
}
void from_pipe(const Files& f, char* to) {
  ASSERT_EQ(read(f.pipe[0], to, buffer_bytes), ssize_t(buffer_bytes));
}
void from_socket(const Files& f, char* to) {
  ASSERT_EQ(recv(f.socket[1], to, buffer_bytes, MSG_WAITALL), ssize_t(buffer_bytes));
}
struct Vectors {
  explicit Vectors(char* buffer)
      : iov{{buffer, page_bytes + 100},
            {buffer + page_bytes + 100, buffer_bytes - page_bytes - 100}} {
    message.msg_iov = iov;
    message.msg_iovlen = 2;
  }
  iovec iov[2];
  msghdr message{};
};

const Operation operations[] = {
    {"write", nullptr, [](const Files& f, char* b) { return write(f.pipe[1], b, buffer_bytes); },
     from_pipe},
    {"writev", nullptr,
     [](const Files& f, char* b) { return writev(f.pipe[1], Vectors(b).iov, 2); }, from_pipe},
    {"pwrite", nullptr, [](const Files& f, char* b) { return pwrite(f.file, b, buffer_bytes, 0); },
     from_file},
    {"send", nullptr, [](const Files& f, char* b) { return send(f.socket[0], b, buffer_bytes, 0); },
     from_socket},
    {"sendmsg", nullptr,
     [](const Files& f, char* b) {
       const Vectors v(b);
       return sendmsg(f.socket[0], &v.message, 0);
     },
     from_socket},
    {"sendmmsg", nullptr,
     [](const Files& f, char* b) {
       Vectors v(b);
       mmsghdr one{v.message, 0};
       return sendmmsg(f.socket[0], &one, 1, 0) == 1 ? ssize_t(one.msg_len) : -1;
     },
     from_socket},
    {"vmsplice", nullptr,
     [](const Files& f, char* b) { return vmsplice(f.pipe[1], Vectors(b).iov, 2, 0); }, from_pipe},
    {"read", fill_pipe, [](const Files& f, char* b) { return read(f.pipe[0], b, buffer_bytes); },
     nullptr},
    {"readv", fill_pipe,
     [](const Files& f, char* b) { return readv(f.pipe[0], Vectors(b).iov, 2); }, nullptr},
    {"pread", fill_file, [](const Files& f, char* b) { return pread(f.file, b, buffer_bytes, 0); },
     nullptr},
    {"preadv", fill_file,
     [](const Files& f, char* b) { return preadv(f.file, Vectors(b).iov, 2, 0); }, nullptr},
    {"recv", fill_socket,
     [](const Files& f, char* b) { return recv(f.socket[0], b, buffer_bytes, MSG_WAITALL); },
     nullptr},
    {"recvmsg", fill_socket,
     [](const Files& f, char* b) {
       Vectors v(b);
       return recvmsg(f.socket[0], &v.message, MSG_WAITALL);
     },
     nullptr},
    {"recvmmsg", fill_socket,
     [](const Files& f, char* b) {
       Vectors v(b);
       mmsghdr one{v.message, 0};
       return recvmmsg(f.socket[0], &one, 1, MSG_WAITALL, nullptr) == 1 ? ssize_t(one.msg_len) : -1;
     },
     nullptr},
    {"process_vm_readv", nullptr,
     [](const Files&, char* b) {
       std::vector<char> copy(buffer_bytes);
       const iovec to{copy.data(), copy.size()}, from{b, buffer_bytes};
       const ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
       return n > 0 && memcmp(copy.data(), b, size_t(n)) == 0 ? n : -1;
     },
     nullptr},
};

class FullCount : public Trapped, public testing::WithParamInterface<std::tuple<size_t, int>> {};

TEST_P(FullCount, OnClosedPages) {
  const Operation& operation = operations[std::get<0>(GetParam())];
  const bool all = std::get<1>(GetParam()) == 0;
  const Files files{pipe_, socket_, file_};
  const std::vector<char> message(buffer_, buffer_ + buffer_bytes);
  std::vector<char> seen(buffer_bytes);
  if (operation.before) {
    operation.before(files, message.data());
    memset(buffer_, 0, buffer_bytes);
  }
  close(all ? 0 : 1, all ? buffer_pages : 1, 20);
  const ssize_t n = operation.run(files, buffer_);
  const int error = errno;
  const Snapshot counted = since();
  EXPECT_FALSE(pages_.any_closed());
  open_and_disarm();
  EXPECT_EQ(n, ssize_t(buffer_bytes)) << operation.name << ": " << strerror(error);
  EXPECT_EQ(counted.waited + counted.settled, 1u);
  if (operation.after) {
    operation.after(files, seen.data());
    EXPECT_EQ(memcmp(seen.data(), message.data(), buffer_bytes), 0);
  } else {
    EXPECT_EQ(memcmp(buffer_, message.data(), buffer_bytes), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, FullCount,
                         testing::Combine(testing::Range<size_t>(0, std::size(operations)),
                                          testing::Values(0, 1)),
                         [](const auto& info) {
                           return std::string(operations[std::get<0>(info.param)].name) +
                                  (std::get<1>(info.param) == 0 ? "_all" : "_second");
                         });

// The description of the memory may itself lie in a closed page, and name another.
TEST_F(Trapped, DescriptionsInClosedPages) {
  auto* iov =
      new (buffer_) iovec[3]{{buffer_ + page_bytes, 10}, {buffer_ + 2 * page_bytes, 20}, {}};
  auto* message = new (buffer_ + 512) msghdr{};
  message->msg_iov = iov;
  message->msg_iovlen = 2;
  close(0, 2, 20);
  EXPECT_EQ(writev(pipe_[1], iov, 2), 30);
  close(0, 3, 20);
  EXPECT_EQ(sendmsg(socket_[0], message, 0), 30);
  EXPECT_EQ(since().waited, 2u);
  char got[30];
  EXPECT_EQ(read(pipe_[0], got, sizeof got), 30);
  EXPECT_EQ(got[9], byte(page_bytes + 9));
  EXPECT_EQ(got[29], byte(2 * page_bytes + 19));
}

// Results, names, times, sets: each would be EFAULT.
TEST_F(Trapped, SmallThingsInClosedPages) {
  ASSERT_EQ(write(pipe_[1], "abc", 3), 3);
  char* at = buffer_ + page_bytes + 64;
  auto* words = reinterpret_cast<int*>(at);
  const auto expect = [&](const char* what, const std::function<long()>& call, long result) {
    memset(at, 0, 256);
    if (strcmp(what, "stat") == 0) strcpy(at, "/");
    if (strcmp(what, "poll") == 0) *reinterpret_cast<pollfd*>(at) = {pipe_[0], POLLIN, 0};
    if (strcmp(what, "select") == 0) FD_SET(pipe_[0], reinterpret_cast<fd_set*>(at));
    if (strcmp(what, "sendfile") == 0) *reinterpret_cast<off_t*>(at) = 5;
    if (strcmp(what, "getsockopt") == 0) words[0] = 4;
    const Snapshot before = snapshot();
    close(1, 1, 5);
    errno = 0;
    EXPECT_EQ(call(), result) << what << ": " << strerror(errno);
    EXPECT_EQ(snapshot().waited, before.waited + 1) << what;
    open_and_disarm();
  };
  struct stat about;
  ASSERT_EQ(pwrite(file_, buffer_, 100, 0), 100);
  expect("FIONREAD", [&] { return ioctl(pipe_[0], FIONREAD, at); }, 0);
  EXPECT_EQ(*words, 3);
  expect("stat", [&] { return syscall(SYS_stat, at, &about); }, 0);
  expect("fstat", [&] { return syscall(SYS_fstat, file_, at); }, 0);
  EXPECT_EQ(reinterpret_cast<struct stat*>(at)->st_size, 100);
  expect("poll", [&] { return poll(reinterpret_cast<pollfd*>(at), 1, 1000); }, 1);
  EXPECT_EQ(reinterpret_cast<pollfd*>(at)->revents, POLLIN);
  expect(
      "select",
      [&] {
        timeval long_time{1, 0};
        auto* set = reinterpret_cast<fd_set*>(at);
        return select(pipe_[0] + 1, set, nullptr, nullptr, &long_time);
      },
      1);
  expect("nanosleep", [&] { return syscall(SYS_nanosleep, at, nullptr); }, 0);
  expect("clock_gettime", [&] { return syscall(SYS_clock_gettime, CLOCK_MONOTONIC, at); }, 0);
  expect("futex", [&] { return syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, 1, nullptr); }, -1);
  expect(
      "sendfile", [&] { return sendfile(socket_[0], file_, reinterpret_cast<off_t*>(at), 10); },
      10);
  EXPECT_EQ(*reinterpret_cast<off_t*>(at), 15);
  expect("getrandom", [&] { return syscall(SYS_getrandom, at, 32, 0); }, 32);
  expect("getcwd", [&] { return syscall(SYS_getcwd, at, 200) > 0; }, 1);
  expect(
      "getsockopt",
      [&] {
        auto* n = reinterpret_cast<socklen_t*>(at);
        return getsockopt(socket_[0], SOL_SOCKET, SO_TYPE, at + 8, n);
      },
      0);
  EXPECT_EQ(words[2], SOCK_STREAM);
  expect(
      "epoll_wait",
      [&] {
        const int fd = epoll_create1(0);
        const long n = epoll_wait(fd, reinterpret_cast<epoll_event*>(at), 1, 0);
        ::close(fd);
        return n;
      },
      0);
  expect("sigprocmask", [&] { return syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, at, 8); }, 0);
  expect("wait4", [&] { return syscall(SYS_wait4, -1, at, WNOHANG, nullptr); }, -1);
  EXPECT_EQ(errno, ECHILD);
}

// Whatever way of closing is in use: it never sees its pages unmapped, moved or opened by others.
TEST_F(Trapped, ChangesOfClosedMemoryWait) {
  const auto waits = [&](const char* what, const std::function<bool()>& call) {
    const Snapshot before = snapshot();
    const int opens = pages_.opens;
    close(1, 1, 5);
    EXPECT_TRUE(call()) << what << ": " << strerror(errno);
    EXPECT_GT(pages_.opens.load(), opens) << what;
    EXPECT_EQ(snapshot().waited, before.waited + 1) << what;
    open_and_disarm();
  };
  waits("mprotect", [&] { return mprotect(buffer_, buffer_bytes, PROT_READ | PROT_WRITE) == 0; });
  waits("madvise", [&] { return madvise(buffer_, 2 * page_bytes, MADV_DONTNEED) == 0; });
  waits("mremap", [&] { return mremap(buffer_, buffer_bytes, buffer_bytes, 0) == buffer_; });
  waits("mmap", [&] {
    return mmap(buffer_ + page_bytes, page_bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  });
  waits("munmap", [&] { return munmap(buffer_ + page_bytes, page_bytes) == 0; });
  ASSERT_NE(mmap(buffer_ + page_bytes, page_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
}

// ------------------------------------------------------------------------------- calls that pass

TEST_F(Trapped, CallsThatReachNoClosedPageLeaveItClosed) {
  close(1, 2);
  const pid_t parent = pid_t(syscall(SYS_getppid));
  const timespec little{0, 1'000'000};
  EXPECT_EQ(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &little, nullptr), 0);
  EXPECT_EQ(write(pipe_[1], buffer_, page_bytes), ssize_t(page_bytes));
  EXPECT_EQ(read(pipe_[0], buffer_ + 3 * page_bytes, page_bytes), ssize_t(page_bytes));
  EXPECT_EQ(write(-1, buffer_, 1), -1);
  EXPECT_EQ(errno, EBADF);
  void* more = mmap(nullptr, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(munmap(more, page_bytes), 0);
  const Snapshot counted = since();
  EXPECT_TRUE(pages_.any_closed());
  open_and_disarm();
  EXPECT_EQ(parent, getppid());
  EXPECT_EQ(counted.passed, 7u);
  EXPECT_EQ(counted.waited + counted.settled, 0u);
  EXPECT_EQ(counted.traps, counted.passed);
  EXPECT_EQ(buffer_[3 * page_bytes + 17], byte(17));
  // Nothing closed, nothing trapped.
  const Snapshot before = snapshot();
  (void)syscall(SYS_getppid);
  EXPECT_EQ(snapshot().traps, before.traps);
}

TEST_F(Trapped, BeforeTheMatchOnlyWhatNobodySees) {
  pages_.unmatched = true;
  close(1, 1);
  std::atomic<int> word{0};
  const timespec little{0, 1'000'000};
  EXPECT_EQ(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &little, nullptr), 0);
  EXPECT_EQ(syscall(SYS_sched_yield), 0);
  EXPECT_EQ(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1), 0);
  void* more = mmap(nullptr, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(mprotect(more, page_bytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(madvise(more, page_bytes, MADV_DONTNEED), 0);
  EXPECT_EQ(munmap(more, page_bytes), 0);
  const auto end = uintptr_t(syscall(SYS_brk, 0));
  EXPECT_EQ(uintptr_t(syscall(SYS_brk, end + page_bytes)), end + page_bytes);
  EXPECT_EQ(uintptr_t(syscall(SYS_brk, end)), end);
  EXPECT_EQ(pages_.matches, 0);
  EXPECT_TRUE(pages_.unmatched);

  const auto matches = [&](const char* what, const std::function<long()>& call, long result) {
    pages_.unmatched = true;
    const int before = pages_.matches;
    after(10, [this] { pages_.unmatched = false; });
    EXPECT_EQ(call(), result) << what;
    EXPECT_EQ(pages_.matches, before + 1) << what;
    EXPECT_TRUE(pages_.any_closed()) << what;
  };
  matches("write", [&] { return write(pipe_[1], buffer_, 3); }, 3);
  matches("poll", [&] { return poll(nullptr, 0, 0); }, 0);
  matches("shared futex", [&] { return syscall(SYS_futex, &word, FUTEX_WAKE, 1); }, 0);
  matches("kill", [&] { return kill(getpid(), 0); }, 0);
  matches(
      "shared mmap",
      [&] { return mmap(nullptr, page_bytes, PROT_READ, MAP_SHARED, file_, 0) != MAP_FAILED; }, 1);
  EXPECT_EQ(pages_.opens + pages_.alls, 0);
  open_and_disarm();
}

// Inside MPI our own calls are never trapped, whoever arms.
TEST_F(Trapped, NothingIsTrappedInsideMpi) {
  close(1, 1);
  const Snapshot before = snapshot();
  Dispatch::pass();
  EXPECT_TRUE(dispatch_.arm());
  (void)syscall(SYS_getppid);
  EXPECT_EQ(write(file_, buffer_ + page_bytes, 1), -1) << "not even this";
  const Snapshot after = snapshot();
  Dispatch::resume();
  (void)syscall(SYS_getppid);
  const Snapshot left = snapshot();
  open_and_disarm();
  EXPECT_EQ(after.traps, before.traps);
  EXPECT_EQ(left.traps, before.traps + 1);
}

#if defined(__x86_64__)
// The red zone, the callee's registers and the flags stay; RCX and R11 are the kernel's.
TEST_F(Trapped, APassingCallLeavesRegistersAndRedZone) {
  close(1, 1);
  uint64_t bad = 0;
  long result = 0;
  asm volatile(R"(
      leaq -1024(%%rsp), %%rsp
      movq $0, %[bad]
      movl $128, %%ecx
    1:
      movq %%rcx, %%rax
      negq %%rax
      movq %%rcx, (%%rsp,%%rax)
      subl $8, %%ecx
      jnz 1b
      movq $0x1111, %%rdi
      movq $0x2222, %%rsi
      movq $0x3333, %%rdx
      movq $0x4444, %%r10
      movq $0x5555, %%r8
      movq $0x6666, %%r9
      movl %[number], %%eax
      stc
      syscall
      adcq $0, %[bad]
      movq %%rax, %[result]
      leaq 2f(%%rip), %%rax
      cmpq %%rax, %%rcx
      je 2f
    2:
      movl $128, %%ecx
    3:
      movq %%rcx, %%rax
      negq %%rax
      cmpq %%rcx, (%%rsp,%%rax)
      je 4f
      addq $0x100, %[bad]
    4:
      subl $8, %%ecx
      jnz 3b
      cmpq $0x1111, %%rdi
      jne 5f
      cmpq $0x2222, %%rsi
      jne 5f
      cmpq $0x3333, %%rdx
      jne 5f
      cmpq $0x4444, %%r10
      jne 5f
      cmpq $0x5555, %%r8
      jne 5f
      cmpq $0x6666, %%r9
      je 6f
    5:
      addq $0x10000, %[bad]
    6:
      leaq 1024(%%rsp), %%rsp
      )"
               : [bad] "=&r"(bad), [result] "=&r"(result)
               : [number] "i"(SYS_getppid)
               : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
  const uint64_t passed = since().passed;
  open_and_disarm();
  EXPECT_EQ(passed, 1u);
  EXPECT_EQ(result, getppid());
  EXPECT_EQ(bad, 1u) << "1: the carry flag; higher: red zone, registers";
}
#endif

// ------------------------------------------------------------------- processes and threads are
// made

TEST_F(Trapped, ForkedChildrenSeeEverything) {
  close(0, buffer_pages, 20);
  const pid_t child = fork();
  if (child == 0) {
    for (size_t i = 0; i < buffer_bytes; ++i) {
      if (buffer_[i] != byte(i)) _exit(1);
    }
    _exit(42);
  }
  EXPECT_EQ(pages_.alls, 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST_F(Trapped, ProgramsAreStarted) {
  close(0, buffer_pages, 20);
  EXPECT_EQ(system("exit 7"), 7 << 8);
  EXPECT_GE(since().settled, 1u);
  EXPECT_FALSE(pages_.any_closed());
  close(0, buffer_pages, 20);
  const char* arguments[] = {"sh", "-c", "exit 9", nullptr};
  pid_t child = 0;
  const Snapshot before = snapshot();
  EXPECT_EQ(
      posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char**>(arguments), environ), 0);
  EXPECT_GE(snapshot().settled, before.settled + 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 9);
}

TEST_F(Trapped, AThreadThatIsMadeFindsNothingClosed) {
  close(0, buffer_pages, 20);
  bool closed = true;
  std::thread thread([&] { closed = pages_.any_closed(); });
  thread.join();
  EXPECT_FALSE(closed);
  EXPECT_TRUE(arm()) << "it has ended";
}

TEST_F(Trapped, ThreadsThatAreNotEnrolled) {
  EXPECT_TRUE(dispatch_.covers_all_threads());
  std::atomic<int> step{0};
  std::atomic<bool> enrolled{false};
  const auto wait_for = [&](int n) {
    while (step < n) sleep_ms(1);
  };
  std::thread stranger([&] {
    wait_for(1);
    enrolled = dispatch_.enroll() && dispatch_.enroll();
    step = 2;
    wait_for(3);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    step = 4;
    wait_for(5);
  });
  sleep_ms(50);  // whatever ended before
  EXPECT_FALSE(dispatch_.covers_all_threads());
  EXPECT_FALSE(dispatch_.arm());
  EXPECT_FALSE(dispatch_.is_armed());
  step = 1;
  wait_for(2);
  EXPECT_TRUE(enrolled);
  EXPECT_TRUE(dispatch_.covers_all_threads());
  EXPECT_TRUE(dispatch_.arm());
  dispatch_.disarm();
  step = 3;
  wait_for(4);
  EXPECT_FALSE(dispatch_.covers_all_threads()) << "a trapped call would kill it";
  EXPECT_FALSE(dispatch_.arm());
  step = 5;
  stranger.join();
  EXPECT_TRUE(arm()) << "it has ended";
}

TEST_F(Trapped, ASecondEnrolledThread) {
  std::atomic<int> step{0};
  ssize_t written = 0;
  std::thread second([&] {
    if (!dispatch_.enroll()) return;
    step = 1;
    while (step < 2) {
    }
    written = write(file_, buffer_, buffer_bytes);
    step = 3;
    while (step < 4) sleep_ms(1);
  });
  while (step < 1) sleep_ms(1);
  close(1, 1, 20);
  step = 2;
  while (step < 3) {
  }
  const Snapshot counted = since();
  open_and_disarm();
  step = 4;
  second.join();
  EXPECT_EQ(written, ssize_t(buffer_bytes));
  EXPECT_EQ(counted.waited, 1u);
}

// A thread that leaves MPI while another arms is trapped, in whatever order that happens.
TEST_F(Trapped, LeavingMpiWhileAnotherArms) {
  std::atomic<int> round{0}, done{0};
  std::atomic<bool> stop{false};
  uint64_t missed = 0;
  std::thread second([&] {
    if (!dispatch_.enroll()) return;
    for (int n = 1; !stop; ++n) {
      Dispatch::pass();
      while (round < n && !stop) {
      }
      for (int i = 0; i < n % 97; ++i) asm volatile("pause");
      Dispatch::resume();
      // Armed by now or later: a call behind the other's arming is trapped.
      while (done < n && !stop) {
      }
      const uint64_t before = dispatch_.counters().traps;
      (void)syscall(SYS_getppid);
      if (!stop && dispatch_.counters().traps == before) ++missed;
      done = -n;
    }
  });
  while (!dispatch_.covers_all_threads()) sleep_ms(1);
  for (int n = 1; n <= 300; ++n) {
    Dispatch::pass();
    done = 0;
    round = n;
    ASSERT_TRUE(arm());
    done = n;
    while (done != -n) {
    }
    dispatch_.disarm();
    Dispatch::resume();
  }
  stop = true;
  second.join();
  EXPECT_EQ(missed, 0u);
}

// --------------------------------------------------------------------------- signals of the
// program

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
  ASSERT_TRUE(dispatch.arm());
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

// --------------------------------------------------------------------------------- with the real
// one

// As the engine: closed by userfaultfd, and whoever waits touches.
class RealPages final : public Pages {
 public:
  explicit RealPages(Guard& guard) : guard_(guard) {}
  bool is_closed(const void* from, size_t n) override { return guard_.is_closed(from, n); }
  void await_open(const void* from, size_t n) override {
    const auto* bytes = static_cast<const volatile char*>(from);
    for (size_t i = 0; i < n; i += page_bytes) (void)bytes[i];
    (void)bytes[n - 1];
    ++waits;
  }
  bool is_unmatched() override { return false; }
  void await_matched() override {}
  void await_all() override {
    while (guard_.any_closed()) sleep_ms(1);
  }
  std::atomic<int> waits{0};

 private:
  Guard& guard_;
};

TEST(RealGuard, FullCounts) {
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
  Missing missing;
  if (missing.start() != Outcome::ok) GTEST_SKIP() << "this system gives us no userfaultfd";
  Guard guard;
  guard.start(&missing);
  RealPages pages(guard);
  Dispatch dispatch;
  const Outcome started = dispatch.start(&pages);
  if (started == Outcome::unsupported) GTEST_SKIP() << "no system call dispatch";
  ASSERT_EQ(started, Outcome::ok);
  ASSERT_TRUE(dispatch.enroll());
  auto* buffer = static_cast<char*>(
      mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  memset(buffer, 1, buffer_bytes);
  const int file = int(memfd_create("dispatch_test", 0));
  std::atomic<int> step{0};
  Region* region = nullptr;
  std::thread message([&] {
    if (!dispatch.exempt()) return;
    step = 1;
    while (step < 2) sleep_ms(1);
    for (size_t page = 0; page < buffer_pages; ++page) {
      for (int i = 0; i < 5; ++i) {
        guard.serve();
        sleep_ms(1);
      }
      memset(region->view + page * page_bytes, int('a' + page), page_bytes);
      (void)guard.arrived(region, page * page_bytes, page_bytes);
    }
    while (step < 3) sleep_ms(1);
  });
  while (step < 1) sleep_ms(1);
  const uint64_t waited = dispatch.counters().waited;
  Dispatch::pass();
  for (int i = 0; i < 1000 && !dispatch.covers_all_threads(); ++i) sleep_ms(1);
  ASSERT_TRUE(dispatch.arm());
  region = guard.close({buffer, buffer_pages});
  ASSERT_NE(region, nullptr);
  Dispatch::resume();
  step = 2;
  const ssize_t n = write(file, buffer, buffer_bytes);
  EXPECT_EQ(n, ssize_t(buffer_bytes));
  EXPECT_EQ(dispatch.counters().waited, waited + 1);
  EXPECT_EQ(pages.waits, 1);
  dispatch.disarm();
  step = 3;
  message.join();
  char seen[buffer_bytes];
  EXPECT_EQ(pread(file, seen, buffer_bytes, 0), ssize_t(buffer_bytes));
  for (size_t i = 0; i < buffer_bytes; ++i) ASSERT_EQ(seen[i], char('a' + i / page_bytes)) << i;
  dispatch.stop();
  close(file);
  munmap(buffer, buffer_bytes);
  missing.stop();
}

// Most users are not root: the same tests again, by one of them.
TEST(AsOrdinaryUser, AllOfThis) {
  if (geteuid() != 0) GTEST_SKIP() << "we are one";
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(77);
    const char* arguments[] = {
        "guard_test", "--gtest_brief=1",
        "--gtest_filter=Trapped.*:*FullCount*:Signals.*:Chained.*:RealGuard.*", nullptr};
    execve("/proc/self/exe", const_cast<char**>(arguments), environ);
    _exit(77);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "this program cannot be run by another user here";
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace headway::guard
