#include "watchdog.h"

#include <cerrno>
#include <fcntl.h>
#include <set>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace headway::launcher {
namespace {

// Messages are process ids: positive to watch, negative to release; 0 is the good end.
[[noreturn]] void guard_groups(int pipe) {
  std::set<pid_t> groups;
  while (true) {
    pid_t message = 0;
    const ssize_t got = read(pipe, &message, sizeof message);
    if (got < 0 && errno == EINTR) continue;
    if (got != ssize_t(sizeof message)) break;  // mpiexec is gone without a word
    if (message == 0) _exit(0);
    if (message > 0) groups.insert(message);
    if (message < 0) groups.erase(-message);
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

void send_message(int pipe, pid_t message) {
  while (write(pipe, &message, sizeof message) < 0 && errno == EINTR) {
  }
}

}  // namespace

void Watchdog::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    // Out of reach of the terminal's signals, and holding nothing that somebody waits for.
    setsid();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    prctl(PR_SET_NAME, "mpiexec-watch");
    if (ends[0] != 3) dup2(ends[0], 3);
    close_range(4, ~0u, 0);
    for (int fd = 0; fd < 3; ++fd) close(fd);
    guard_groups(3);
  }
  close(ends[0]);
  if (pid_ < 0) {
    close(ends[1]);
    return;
  }
  pipe_ = ends[1];
}

void Watchdog::watch(int pipe, pid_t group) {
  if (pipe >= 0) send_message(pipe, group);
}

void Watchdog::release(int pipe, pid_t group) {
  if (pipe >= 0) send_message(pipe, -group);
}

void Watchdog::dismiss() {
  if (pipe_ < 0) return;
  send_message(pipe_, 0);
  close(pipe_);
  pipe_ = -1;
  waitpid(pid_, nullptr, 0);
}

}  // namespace headway::launcher
