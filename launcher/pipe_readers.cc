#include "pipe_readers.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

#include "say.h"

namespace headway::launcher {
namespace {

enum class Answer { no, yes, unknown };

// A small file of /proc; false, with errno, if it cannot be read.
bool read_text(const std::string& path, std::string& text) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  text.clear();
  char piece[4096];
  ssize_t got = 0;
  while ((got = read(fd, piece, sizeof piece)) > 0) text.append(piece, static_cast<size_t>(got));
  const int error = errno;
  close(fd);
  errno = error;
  return got == 0;
}

// The numbers that name entries of a folder of /proc.
std::vector<int> numbers_in(const std::string& path) {
  std::vector<int> numbers;
  DIR* list = opendir(path.c_str());
  if (!list) return numbers;
  while (const dirent* entry = readdir(list)) {
    const int number = atoi(entry->d_name);
    if (number > 0) numbers.push_back(number);
  }
  closedir(list);
  return numbers;
}

// One process, as far as it has to do with the pipe.
class Reader {
 public:
  Reader(pid_t pid, const struct stat& pipe)
      : pid_(pid), pipe_(pipe), root_(format("/proc/%d/", int(pid))) {}

  bool is_pipe(uint64_t fd) const {
    struct stat status;
    return fd < 1u << 30 && stat(format("%sfd/%d", root_.c_str(), int(fd)).c_str(), &status) == 0 &&
           status.st_dev == pipe_.st_dev && status.st_ino == pipe_.st_ino;
  }

  Answer waits() const {
    // Who reads without waiting is never seen at it.
    std::string text;
    if (is_pipe(0) && read_text(root_ + "fdinfo/0", text)) {
      const size_t flags = text.find("flags:");
      if (flags != std::string::npos &&
          (strtoul(text.c_str() + flags + 6, nullptr, 8) & O_NONBLOCK) != 0) {
        return Answer::yes;
      }
    }
    for (const int task : numbers_in(root_ + "task")) {
      if (!read_text(format("%stask/%d/syscall", root_.c_str(), task), text)) {
        if (errno == ENOENT || errno == ESRCH) continue;  // that thread has just ended
        return Answer::unknown;
      }
      if (call_waits(text)) return Answer::yes;
    }
    return Answer::no;
  }

 private:
  // `text` is what /proc says of a thread: its system call and the arguments, or "running".
  bool call_waits(const std::string& text) const {
    char* at = nullptr;
    const long number = strtol(text.c_str(), &at, 10);
    if (at == text.c_str() || number < 0) return false;
    uint64_t a[3];
    for (uint64_t& argument : a) argument = strtoull(at, &at, 16);
    switch (number) {
      case SYS_read:
      case SYS_readv:
      case SYS_splice:
      case SYS_tee: return is_pipe(a[0]);
      case SYS_sendfile: return is_pipe(a[1]);
      case SYS_ppoll:
#ifdef SYS_poll
      case SYS_poll:
#endif
        return polls(a[0], a[1]);
      case SYS_pselect6:
#ifdef SYS_select
      case SYS_select:
#endif
        return selects(a[0], a[1]);
      case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
      case SYS_epoll_pwait2:
#endif
#ifdef SYS_epoll_wait
      case SYS_epoll_wait:
#endif
        return watches(a[0]);
      // These do not tell what is waited for.
      case SYS_restart_syscall:
#ifdef SYS_io_uring_enter
      case SYS_io_uring_enter:
#endif
        return is_pipe(0);
      default: return false;
    }
  }

  bool read_memory(uint64_t address, void* out, size_t size) const {
    iovec here = {out, size};
    iovec there = {reinterpret_cast<void*>(address), size};
    return process_vm_readv(pid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
  }

  bool polls(uint64_t address, uint64_t count) const {
    if (count == 0 || count > 4096) return count > 4096 && is_pipe(0);
    std::vector<pollfd> entries(count);
    if (!read_memory(address, entries.data(), count * sizeof(pollfd))) return is_pipe(0);
    for (const pollfd& entry : entries) {
      if (entry.fd >= 0 && (entry.events & (POLLIN | POLLRDNORM)) != 0 &&
          is_pipe(uint64_t(entry.fd))) {
        return true;
      }
    }
    return false;
  }

  bool selects(uint64_t count, uint64_t address) const {
    if (address == 0 || count == 0) return false;
    if (count > FD_SETSIZE) return is_pipe(0);
    unsigned long words[FD_SETSIZE / (8 * sizeof(long))] = {};
    constexpr size_t bits = 8 * sizeof(long);
    if (!read_memory(address, words, (count + bits - 1) / bits * sizeof(long))) return is_pipe(0);
    for (uint64_t fd = 0; fd < count; ++fd) {
      if ((words[fd / bits] >> fd % bits & 1) != 0 && is_pipe(fd)) return true;
    }
    return false;
  }

  bool watches(uint64_t epoll) const {
    std::string text;
    if (!read_text(format("%sfdinfo/%d", root_.c_str(), int(epoll)), text)) return is_pipe(0);
    for (size_t at = 0; (at = text.find("tfd:", at)) != std::string::npos;) {
      at += 4;
      if (is_pipe(strtoull(text.c_str() + at, nullptr, 10))) return true;
    }
    return false;
  }

  const pid_t pid_;
  const struct stat& pipe_;
  const std::string root_;
};

// Process `pid` and those that came of it.
void add_family(int pid, std::vector<int>& family, int depth = 0) {
  family.push_back(pid);
  std::string text;
  for (const int task : numbers_in(format("/proc/%d/task", pid))) {
    if (depth > 20 || !read_text(format("/proc/%d/task/%d/children", pid, task), text)) continue;
    const char* at = text.c_str();
    char* next = nullptr;
    for (long child = strtol(at, &next, 10); next != at; child = strtol(at, &next, 10)) {
      add_family(static_cast<int>(child), family, depth + 1);
      at = next;
    }
  }
}

}  // namespace

bool PipeReaders::want_input(int pipe, pid_t rank, int64_t now_ms) {
  struct stat status;
  int unread = 0;
  if (fstat(pipe, &status) != 0) return true;
  if (ioctl(pipe, FIONREAD, &unread) == 0 && unread > 0) return false;  // it has some still
  if (access("/proc/self/syscall", R_OK) != 0) return true;
  std::vector<int> processes;
  if (rank > 0) add_family(rank, processes);
  const size_t family = processes.size();
  if (now_ms >= wide_look_at_) {
    wide_look_at_ = now_ms + wide_look_ms;
    for (const int pid : numbers_in("/proc")) processes.push_back(pid);
  }
  for (size_t i = 0; i < processes.size(); ++i) {
    const Reader reader(processes[i], status);
    if (i >= family && (processes[i] == getpid() || !reader.is_pipe(0))) continue;
    if (reader.waits() != Answer::no) return true;
  }
  return false;
}

}  // namespace headway::launcher
