// For tests that run many seeds: a process beside this one, which tells the seed when this one
// hangs or is killed while it runs it; neither leaves a test time to say so. Thread: that of the
// test. Owner: the test. Invariant: it ends before the test, or with it.
#pragma once
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace headway::protocols {

inline uint64_t first_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 1;
}
inline uint64_t seed_count(uint64_t usual) {
  const char* given = getenv("HEADWAY_TEST_SEEDS");
  return given ? strtoull(given, nullptr, 0) : usual;
}

class SeedWatch {
 public:
  SeedWatch() {
    int ends[2];
    if (pipe(ends) != 0) return;
    const pid_t parent = getpid();
    child_ = fork();
    if (child_ == 0) {
      close(ends[1]);
      watch(ends[0], parent);
      _exit(0);
    }
    close(ends[0]);
    pipe_ = ends[1];
  }
  ~SeedWatch() {
    begin(none);
    if (pipe_ >= 0) close(pipe_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  SeedWatch(const SeedWatch&) = delete;
  SeedWatch& operator=(const SeedWatch&) = delete;

  void begin(uint64_t seed) {
    if (pipe_ >= 0 && write(pipe_, &seed, sizeof seed) != sizeof seed) perror("seed watch");
  }

 private:
  static constexpr uint64_t none = ~0ull;
  static constexpr int longest_ms = 60'000;

  static void watch(int pipe, pid_t parent) {
    uint64_t seed = none;
    for (;;) {
      pollfd ready{pipe, POLLIN, 0};
      const bool hangs = poll(&ready, 1, seed == none ? -1 : longest_ms) == 0;
      if (!hangs && read(pipe, &seed, sizeof seed) == sizeof seed) continue;
      if (seed == none) return;
      char line[100];
      const int n = snprintf(line, sizeof line, "HEADWAY_TEST_SEED=%llu %s\n",
                             static_cast<unsigned long long>(seed),
                             hangs ? "hangs" : "ended the test's process");
      if (write(2, line, size_t(n)) != n) return;
      if (hangs) kill(parent, SIGKILL);
      return;
    }
  }

  pid_t child_ = -1;
  int pipe_ = -1;
};

}  // namespace headway::protocols
