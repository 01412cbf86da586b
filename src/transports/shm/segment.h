// Segment: memory for the program that several processes of one host have in common. One of them
// makes it, a memfd of its own, and tells its key; the others open it through /proc, as the node's
// segment is. Each reserves its part itself, so that the system places it near whoever uses it
// most, and a full machine is an error here and not a SIGBUS later. Thread: that of its owner.
// Owner: a window. Invariant: while it is attached, memory() are whole pages, zero at first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <sys/types.h>

#include "base/outcome.h"

namespace headway::shm {

// Sets a file's size, with memory behind the first `used` bytes.
bool set_size(int fd, off_t size, off_t used);

class Segment {
 public:
  // What the others need. Plain numbers, so that an exchange of numbers brings it.
  struct Key {
    int64_t pid = 0;  // 0: there is none
    int64_t file = 0;
    int64_t cookie = 0;
  };

  Outcome create(uint64_t bytes, Key& key);
  // refused: this process may not open it, or it is something else; peer_lost: who made it has
  // ended; no_resource, no_memory: no descriptor or address space is left.
  Outcome attach(const Key& key, uint64_t bytes);
  // Memory behind these bytes from now on. no_memory: the machine is full.
  Outcome reserve(uint64_t offset, uint64_t n);
  // Nobody opens it any more, and all is reserved: the descriptor is not needed.
  void settle();
  void detach();

  char* memory() const { return memory_ ? memory_ + head_bytes : nullptr; }
  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr size_t head_bytes = 4096;  // proves that what was opened is what was meant

  Outcome map(int fd, uint64_t bytes);

  char* memory_ = nullptr;
  uint64_t bytes_ = 0;  // without the head
  int fd_ = -1;
};

}  // namespace headway::shm
