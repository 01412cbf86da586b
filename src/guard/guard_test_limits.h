// What tests of limits share: children that live under them, filters of system calls, pinned pages.
// Thread: each test's own. Owner: the test. Invariant: what is limited is so in a child alone.
#pragma once
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "guard/mechanism.h"

namespace headway::guard {

// Its exit code; a child that hangs ends after ten seconds.
inline int in_child(const std::function<int()>& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(10);
    _exit(child());
  }
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// From here on this system call fails, as in a container.
inline bool refuse(int number) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unsigned(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

inline bool limit(int which, rlim_t most) {
  const rlimit wish = {most, most};
  return setrlimit(__rlimit_resource_t(which), &wish) == 0;
}

// A stranger to root, as most users are.
inline bool become_nobody() {
  return setgid(65534) == 0 && setuid(65534) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

// Sanitizers need some for themselves.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_sanitizer = true;
#else
inline constexpr bool under_sanitizer = false;
#endif

// As many mappings as the process may have: neighbours that cannot be one.
inline std::vector<char*> fill_mappings() {
  std::vector<char*> singles;
  singles.reserve(100'000);
  // The test's own vectors find room in the heap, which cannot grow any more.
  const std::vector<char> room(96 << 10);
  for (;;) {
    void* page = mmap(nullptr, page_bytes, singles.size() % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return singles;
    singles.push_back(static_cast<char*>(page));
  }
}

// Registered with io_uring: the kernel goes on using the frames, whatever is mapped there later.
class Ring {
 public:
  bool open() {
    io_uring_params parameters = {};
    fd_ = int(syscall(SYS_io_uring_setup, 1, &parameters));
    return fd_ >= 0;
  }
  bool pin(void* memory, size_t bytes) const {
    const iovec buffer{memory, bytes};
    return syscall(SYS_io_uring_register, fd_, IORING_REGISTER_BUFFERS, &buffer, 1) == 0;
  }
  bool unpin() const {
    return syscall(SYS_io_uring_register, fd_, IORING_UNREGISTER_BUFFERS, nullptr, 0) == 0;
  }
  ~Ring() {
    if (fd_ >= 0) close(fd_);
  }

 private:
  int fd_ = -1;
};

}  // namespace headway::guard
