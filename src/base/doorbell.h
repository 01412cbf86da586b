// Doorbell: wakes a sleeping process of the same node. A pipe, because another process can open it
// through /proc/PID/fd (an eventfd cannot be opened so), and nothing is left behind by a kill. Who
// cannot open it (/proc of a process that may not be looked into is closed; no descriptor is left)
// calls by a datagram to a name, with a socket that it has beforehand.
// Thread: ring() any, the rest the owner. Owner: the process whose bell it is.
#pragma once
#include <cstdint>

#include "base/outcome.h"

namespace headway::base {

class Doorbell {
 public:
  Outcome create();
  // From now on others may call() this name, which nobody else may have (abstract, so it ends with
  // the process). False if the system has no such sockets: then the pipe is all there is.
  bool listen(const char* name);
  // Number of the write end, which peers open through /proc.
  int write_fd() const { return fds_[1]; }
  // Readable while the bell has been rung.
  int read_fd() const { return fds_[0]; }
  void ring() const { ring_fd(fds_[1]); }
  // Readable while somebody has called; -1 if nobody can.
  int call_fd() const { return socket_; }
  // Takes all rings; only if there were none, all calls, so that rings cost one system call.
  // What is left keeps its descriptor readable. True if there were any.
  bool drain() const;
  void close();

  // Opens the bell of another process; -1 if the system forbids it.
  static int open_of(int pid, int fd);
  static void ring_fd(int fd);
  // Wakes who listens to that name, with this process's own call_fd().
  static void call(int fd, const char* name);

 private:
  int fds_[2] = {-1, -1};
  int socket_ = -1;
};

}  // namespace headway::base
