// Scratch: memory of the library's own that data passes through on its way to or from a disk.
// Thread: that of its owner. Owner: a call, or an access under way. Invariant: it is given back
// with its owner.
#pragma once
#include <cstdint>

#include "base/heap.h"

namespace headway::io {

class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { base::heap_free(memory_, size_t(bytes_)); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // At least `bytes`; what it held is lost if it grows. False without memory.
  [[nodiscard]] bool reserve(uint64_t bytes) {
    if (bytes <= bytes_) return true;
    void* grown = base::heap_allocate(size_t(bytes));
    if (!grown) return false;
    base::heap_free(memory_, size_t(bytes_));
    memory_ = grown;
    bytes_ = bytes;
    return true;
  }
  char* data() const { return static_cast<char*>(memory_); }
  uint64_t bytes() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace headway::io
