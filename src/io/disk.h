// Disk: a file as the system has it: POSIX calls that are done again when a signal interrupts them,
// carried on when they move less than was asked, and cut in pieces far below the 2 GB that it moves
// at once. Thread: any, several at once, each at an offset of its own; never with the engine held.
// Owner: its File. Invariant: what is not moved is told: by `got` at the end of the file, by a
// Failure otherwise.
#pragma once
#include <cstdint>

#include "io/failure.h"

namespace headway::io {

class Disk {
 public:
  Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // `flags` and `permissions` as open(2) has them. Directories, pipes and sockets are refused.
  Failure open(const char* name, int flags, unsigned permissions);
  Failure close();
  bool is_open() const { return fd_ >= 0; }
  // On another machine: what is written is seen there after sync() alone.
  bool is_remote() const { return remote_; }

  // `got`: how many bytes there were before the end of the file.
  Failure read(int64_t offset, char* to, uint64_t n, uint64_t& got) const;
  Failure write(int64_t offset, const char* from, uint64_t n) const;

  Failure size(int64_t& bytes) const;
  // What tells a file from others on one machine; 0 where it is not open.
  uint64_t device() const { return device_; }
  uint64_t number() const { return number_; }
  Failure set_size(int64_t bytes) const;
  // Blocks of the disk for all bytes below; the file grows to it if it is shorter.
  Failure reserve(int64_t bytes) const;
  Failure sync() const;
  // Others' writes on other machines are seen from here on. `exclusive`: as for a lock.
  void look_anew(bool exclusive) const;
  // Waits for bytes [from, to), which nobody else may write meanwhile, or read either if
  // `exclusive`. Locks of one descriptor do not shut each other out.
  Failure lock(int64_t from, int64_t to, bool exclusive) const;
  Failure unlock(int64_t from, int64_t to) const;
  // They will be read soon.
  void expect(int64_t from, uint64_t n) const;

 private:
  Failure set_lock(int64_t from, int64_t to, int kind) const;

  int fd_ = -1;
  bool remote_ = false;
  uint64_t device_ = 0, number_ = 0;
};

// Takes a file away.
Failure remove_file(const char* name);

}  // namespace headway::io
