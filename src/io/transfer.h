// Transfer: one rank's data between its memory and its view of a file, by itself. Thread: any,
// never with the engine held: it waits for the disk. Owns nothing. Invariant: what a read does not
// bring is told by the number of bytes, what a write does not put by a Failure.
#pragma once
#include <cstdint>

#include "io/disk.h"
#include "io/view.h"
#include "protocols/user_memory.h"

namespace headway::io {

using protocols::UserMemory;

// `count` elements of the program's.
struct Data {
  void* buffer = nullptr;
  uint64_t count = 0;
  const datatypes::Type* type = nullptr;
  uintptr_t handle = 0;  // of the type, for functions of the program

  UserMemory memory() const { return type ? UserMemory(buffer, count, *type) : UserMemory(); }
  uint64_t bytes() const { return type ? count * type->size() : 0; }
};

// Bytes that `data` takes in a file. unsupported: a part of its type has no size there.
Outcome file_bytes(const Data& data, const Representation& representation, uint64_t& bytes);

// Between memory in one piece and bytes [at, at + n) of the view. `got`: as many as there were.
Failure write_view(const Disk& disk, const View& view, uint64_t at, const char* from, uint64_t n);
Failure read_view(const Disk& disk, const View& view, uint64_t at, char* to, uint64_t n,
                  uint64_t& got);

// All of `data` from byte `at` of the view on. `moved`: bytes of the program's memory.
Failure write_data(const Disk& disk, const View& view, uint64_t at, const Data& data,
                   uint64_t& moved);
Failure read_data(const Disk& disk, const View& view, uint64_t at, const Data& data,
                  uint64_t& moved);

}  // namespace headway::io
