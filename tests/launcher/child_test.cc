// A rank's group is watched before its program runs: whoever kills mpiexec at any moment after
// that leaves nothing behind.
#include "child.h"

#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "watchdog.h"

namespace headway::launcher {
namespace {

bool alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t end = text.rfind(") ");
  return end != std::string::npos && text[end + 2] != 'Z' && text[end + 2] != 'X';
}

// In a process of its own, which stands for mpiexec: starts the rank and is not told of it.
[[noreturn]] void be_mpiexec(int output, const char* path) {
  Watchdog watchdog;
  watchdog.start();
  ChildRecipe recipe;
  recipe.path = path;
  recipe.arguments = {path, "-c", "sleep 100 & echo $!; wait"};
  recipe.environment = {"PATH=/usr/bin:/bin"};
  recipe.output = output;
  recipe.watchdog = watchdog.pipe();
  OriginalState original{};
  sigemptyset(&original.signal_mask);
  original.broken_pipe.sa_handler = SIG_DFL;
  getrlimit(RLIMIT_NOFILE, &original.descriptors);
  if (start_child(recipe, original).pid < 0) {
    const bool told = write(output, "0\n", 2) == 2;
    _exit(told ? 1 : 2);
  }
  while (true) pause();
}

// What the process that stands for mpiexec wrote, or its rank.
pid_t number_from(int fd) {
  std::string text;
  char letter = 0;
  pollfd ready{fd, POLLIN, 0};
  while (poll(&ready, 1, 20000) == 1 && read(fd, &letter, 1) == 1 && letter != '\n') text += letter;
  return text.empty() ? -1 : std::stoi(text);
}

TEST(Child, IsWatchedFromItsStart) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t stand_in = fork();
  if (stand_in == 0) be_mpiexec(ends[1], "/bin/sh");
  close(ends[1]);
  const pid_t left = number_from(ends[0]);
  kill(stand_in, SIGKILL);
  waitpid(stand_in, nullptr, 0);
  ASSERT_GT(left, 1);
  for (int i = 0; i < 2000 && alive(left); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_FALSE(alive(left)) << "what the rank had started";
  kill(left, SIGKILL);
  close(ends[0]);
}

TEST(Child, WhoCannotStartIsNotWatched) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ChildRecipe recipe;
  recipe.path = "/nonexistent";
  recipe.arguments = {"nonexistent"};
  recipe.watchdog = ends[1];
  OriginalState original{};
  sigemptyset(&original.signal_mask);
  getrlimit(RLIMIT_NOFILE, &original.descriptors);
  EXPECT_LT(start_child(recipe, original).pid, 0);
  close(ends[1]);  // nobody waits for what is not told
  pid_t told[3] = {};
  ASSERT_EQ(read(ends[0], told, sizeof told), ssize_t(2 * sizeof(pid_t)));
  EXPECT_GT(told[0], 0);
  EXPECT_EQ(told[1], -told[0]);
  close(ends[0]);
  waitpid(told[0], nullptr, 0);
}

}  // namespace
}  // namespace headway::launcher
