// Descriptor: a userfaultfd, opened in the widest way that this process may. Thread: start and stop
// by the owner; reading by the message thread. Owner: a mechanism. Invariant: after start() it
// reports removals, moves and unmappings of registered ranges.
#pragma once
#include <cstddef>
#include <cstdint>

#include "guard/mechanism.h"

namespace headway::guard {

class Descriptor {
 public:
  // `features` beside the events of a moving address space. refused: the system does not let us.
  Outcome start(uint64_t features);
  void stop();
  int fd() const { return fd_; }
  // Faults inside system calls wait, too. Without, the kernel answers EFAULT to them.
  bool sees_kernel() const { return sees_kernel_; }

  Outcome watch(Range range, uint64_t mode) const;
  void unwatch(Range range) const;
  void serve(Listener& listener) const;

 private:
  int fd_ = -1;
  bool sees_kernel_ = false;
};

}  // namespace headway::guard
