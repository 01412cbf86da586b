// Watchdog: a small process that ends the process groups of all ranks if mpiexec itself is killed,
// with whatever the ranks have started. (The kernel ends the ranks themselves.) Owner: Job.
#pragma once
#include <sys/types.h>

namespace headway::launcher {

class Watchdog {
 public:
  Watchdog() = default;
  ~Watchdog() { dismiss(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // To be called before anything else is opened: the process keeps none of our descriptors.
  void start();
  // Where to say which groups are to be watched; -1 if there is no watchdog.
  int pipe() const { return pipe_; }
  // For the leader of a group itself, on its way to its program: allocates nothing.
  static void watch(int pipe, pid_t group);
  // The leader has ended by itself, or could not start; what it left behind stays.
  static void release(int pipe, pid_t group);
  void dismiss();

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

}  // namespace headway::launcher
