// Doorbell: wakes a sleeping process of the same node. A pipe, because another process can open it
// through /proc/PID/fd (an eventfd cannot be opened so), and nothing is left behind by a kill.
// Thread: ring() any, the rest the owner. Owner: the process whose bell it is.
#pragma once
#include <cstdint>

#include "base/outcome.h"

namespace headway::base {

class Doorbell {
 public:
  Outcome create();
  // Number of the write end, which peers open through /proc.
  int write_fd() const { return fds_[1]; }
  // Readable while the bell has been rung.
  int read_fd() const { return fds_[0]; }
  void ring() const { ring_fd(fds_[1]); }
  // Takes all rings. True if there were any.
  bool drain() const;
  void close();

  // Opens the bell of another process; -1 if the system forbids it.
  static int open_of(int pid, int fd);
  static void ring_fd(int fd);

 private:
  int fds_[2] = {-1, -1};
};

}  // namespace headway::base
