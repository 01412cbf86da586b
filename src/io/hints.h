// Hints: what the program wishes for a file, of the keys that MPI 5.0, section 14.2.8 reserves;
// other keys and values that make no sense are ignored. Thread: any, plain values. Owner: the file.
// Invariant: each value can be used as it is.
#pragma once
#include <cstdint>

#include "objects/info.h"

namespace headway::io {

struct Hints {
  enum class Wish : uint8_t { automatic, always, never };

  static constexpr uint64_t least_buffer = 64 << 10, most_buffer = 64 << 20;

  Wish collective_buffering = Wish::automatic;
  uint64_t buffer_bytes = 1 << 20;  // cb_buffer_size: what one rank gathers at a time
  uint64_t nodes = 0;               // cb_nodes: ranks that gather; 0: as many as pay
  unsigned permissions = 0666;      // file_perm, of a file that is made; the umask is taken off

  void take(const objects::Info& info);
  // All that have a value. False without memory.
  [[nodiscard]] bool tell(objects::Info& info, const char* file_name) const;
};

}  // namespace headway::io
