#include "ask.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace headway::launcher {
namespace {

constexpr size_t most_told = 1 << 20;  // bytes

using Clock = std::chrono::steady_clock;

}  // namespace

std::string output_of(const std::vector<std::string>& words, Clock::time_point end, bool& found) {
  int ends[2];
  found = true;
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  // What mpiexec holds back, and ignores, is its own.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  pid_t child = -1;
  found = posix_spawnp(&child, list[0], &actions, &attributes, list.data(), environ) == 0;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  while (found) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd ready = {ends[0], POLLIN, 0};
    if (left.count() <= 0 || text.size() > most_told ||
        (poll(&ready, 1, int(left.count())) <= 0 && errno != EINTR)) {
      break;
    }
    if (!ready.revents) continue;
    char piece[4096];
    const ssize_t n = read(ends[0], piece, sizeof piece);
    if (n <= 0) break;
    text.append(piece, size_t(n));
  }
  close(ends[0]);
  // All that it says has been read; one that lives on behind a closed output would be waited for.
  if (found) kill(child, SIGKILL);
  while (found && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace headway::launcher
