// Descriptor: a userfaultfd, opened in the widest way that this process may. Thread: start and stop
// by the owner; reading by the message thread. Owner: a mechanism. Invariant: after start() it
// reports removals, moves and unmappings of registered ranges, unless it was asked not to.
// Pinned pages are those that the kernel or a device goes on using by their frames: buffers that
// are registered with io_uring or a network card, or that an unbuffered read (O_DIRECT) fills.
#pragma once
#include <cstddef>
#include <cstdint>

#include "guard/mechanism.h"

namespace headway::guard {

// Fresh private memory, or null.
char* map_aside(size_t pages);
// A page that is shared with a forked child, or of zeros, cannot be moved either: writes what is
// there, so that the program has one of its own.
void make_ours(Range range);

class Descriptor {
 public:
  // `features` beside the events of a moving address space. refused: the system does not let us.
  // Without `moves`: as before Linux 6.8.
  Outcome start(uint64_t features, bool moves = true);
  // For curtains: of events it tells moves alone, since others would wait for us in our own calls.
  Outcome start_to_hold();
  // For is_held() only: nobody reads of events.
  void start_to_probe();
  // For pages whose writes are noted without telling anybody, and is_held(); no events either.
  // unsupported: before Linux 6.8.
  Outcome start_to_follow();
  void stop();
  int fd() const { return fd_; }
  // Faults inside system calls wait, too. Without, the kernel answers EFAULT to them.
  bool sees_kernel() const { return sees_kernel_; }

  Outcome watch(Range range, uint64_t mode) const;
  void unwatch(Range range) const;
  // The pages count as written. False: a part is not watched for writes.
  bool unprotect(Range range) const;
  // Pages can be moved (Linux 6.8); else nothing tells pinned ones from others.
  bool can_move() const { return moves_; }
  // Moves the pages of a watched range to fresh memory at `to`, and so closes it. refused: one is
  // pinned, or of memory that cannot be moved; then the range holds what it held.
  Outcome move_aside(Range range, char* to) const;
  // A page of the range is pinned, or cannot be moved. What it holds stays. False where it cannot
  // be told.
  bool is_held(Range range) const;
  void serve(Listener& listener) const;

 private:
  Outcome open(uint64_t features, bool moves);
  bool move(char* from, char* to, size_t bytes, size_t& done) const;
  bool cannot_move(Range range) const;
  bool move_there_and_back(Range range, char* aside) const;

  int fd_ = -1;
  bool sees_kernel_ = false;
  bool moves_ = false;
};

}  // namespace headway::guard
