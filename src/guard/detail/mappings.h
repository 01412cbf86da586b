// Mappings: what stands at an address of this process. Asked by PROCMAP_QUERY, where the kernel has
// it (6.11), else read from the text of /proc/self/maps, which takes some 40 us instead of one.
// Thread: any; find() also in a signal handler. Owner: a curtain, the guard, versions. Invariant:
// an answer was true at some moment during the call; another thread may have changed it since.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/outcome.h"
#include "base/spin_lock.h"

namespace headway::guard {

struct File {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const File&) const = default;
};

struct Mapping {
  enum class What : uint8_t {
    plain,    // private anonymous memory, no stack
    curtain,  // of ours: it: stands for closed pages
    other
  };
  char* from = nullptr;
  char* to = nullptr;
  uint64_t offset = 0;  // of `from` in the file
  File file;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  What what = What::other;

  bool holds(const char* address) const { return address >= from && address < to; }
  uint64_t offset_of(const char* address) const { return offset + uint64_t(address - from); }
};

class Mappings {
 public:
  // By this name our curtains are known again, also where they have moved to.
  static constexpr const char* curtain_name = "headway-curtain";

  // `text`: without PROCMAP_QUERY, as an older kernel would have it.
  Outcome open(bool text = false);
  void close();
  // The mapping that holds the address, or else the next one above it. False: there is none.
  // SIGSAFE.
  bool find(const char* address, Mapping& out) { return find(address, out, false); }
  // The same, of those that the program can write and others may see.
  bool find_shared(const char* address, Mapping& out) { return find(address, out, true); }
  // Pages from `base` on that show the file from `offset` on. SIGSAFE.
  size_t showing(const char* base, size_t pages, const File& file, uint64_t offset,
                 bool writable = false);

 private:
  bool find(const char* address, Mapping& out, bool shared) {
    return text_ ? read_text(address, out, shared) : query(address, out, shared);
  }
  bool query(const char* address, Mapping& out, bool shared) const;
  bool read_text(const char* address, Mapping& out, bool shared);

  int fd_ = -1;
  bool text_ = false;
  base::SpinLock lock_;  // the reading position of the text
};

}  // namespace headway::guard
