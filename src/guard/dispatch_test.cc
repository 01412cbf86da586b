// System calls on closed pages: full counts where the kernel alone would answer EFAULT; and calls
// that reach none, which pass as if nothing had been.
#include "guard/dispatch.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "guard/dispatch_test_pages.h"

namespace headway::guard {
namespace {

// What the other tests are worth: without the trap they fail so.
TEST_F(Trapped, WithoutTheTrapTheKernelRefuses) {
  pages_.close(buffer_ + page_bytes, page_bytes);
  EXPECT_EQ(write(file_, buffer_ + page_bytes, page_bytes), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(write(file_, buffer_, buffer_bytes), ssize_t(page_bytes)) << "short";
}

// ------------------------------------------------------------------- pointers to closed pages

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

#if defined(__x86_64__)
// Some threads end so. The gate keeps its return address on that stack.
TEST_F(Trapped, ACallThatUnmapsItsOwnStack) {
  constexpr size_t bytes = 16 * page_bytes;
  auto* stack = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  close(1, 1, 20);
  long result = SYS_munmap;
  asm volatile(
      R"(
      movq %%rsp, %%rbx
      movq %[top], %%rsp
      syscall
      movq %%rbx, %%rsp
      )"
      : "+a"(result)
      : "D"(stack), "S"(bytes), [top] "r"(stack + bytes - 64)
      : "rbx", "rcx", "r11", "memory", "cc");
  const Snapshot counted = since();
  open_and_disarm();
  EXPECT_EQ(result, 0);
  EXPECT_EQ(counted.settled, 1u);
  EXPECT_EQ(msync(stack, bytes, MS_ASYNC), -1);
  EXPECT_EQ(errno, ENOMEM) << "it is there still";
}
#endif

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

TEST_F(Trapped, WhereItSettlesTheFirstCallWaitsAndTheRestIsFree) {
  pages_.settling = true;
  close(1, 2, 30);
  const pid_t parent = pid_t(syscall(SYS_getppid));
  EXPECT_FALSE(pages_.any_closed());
  for (int i = 0; i < 100; ++i) (void)syscall(SYS_getppid);
  const Snapshot counted = since();
  open_and_disarm();
  EXPECT_EQ(parent, getppid());
  EXPECT_EQ(counted.settled, 1u);
  EXPECT_EQ(counted.traps, 1u);
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

}  // namespace
}  // namespace headway::guard
