// Representation: how numbers look in a file: as in memory ("native", "internal"), in external32,
// or as functions of the program make them. Thread: any; those of the program on application
// threads alone (is_of_program). Owner: static, or the table of api/datareps. Invariant: one that
// converts has all three functions.
#pragma once
#include <cstdint>

#include "datatypes/type.h"
#include "io/failure.h"

namespace headway::io {

inline constexpr uint64_t max_representation = 128;  // MPI_MAX_DATAREP_STRING; api/ asserts it

// Elements [first, first + count) of a user's buffer, and their bytes in the file. Functions of the
// program count basic elements instead (MPI 5.0, section 14.5.3).
struct Piece {
  const datatypes::Type& type;
  uintptr_t handle;  // of the type, for functions of the program
  void* buffer;      // where element 0 is
  uint64_t first;
  uint64_t count;
  char* file;
};

struct Representation {
  char name[max_representation] = {};
  bool is_of_program = false;
  // Bytes in the file of one element of a predefined type. False: it has none.
  bool (*basic_bytes)(const Representation& self, const datatypes::Type& basic,
                      uint64_t& bytes) = nullptr;
  int (*to_file)(const Representation& self, const Piece& piece) = nullptr;    // Failure::error
  int (*from_file)(const Representation& self, const Piece& piece) = nullptr;  // likewise

  bool converts() const { return basic_bytes != nullptr; }
};

extern const Representation native, internal, external32;

// The type that lies in a file as `type` lies in memory: displacements in elements count the
// file's elements, those in bytes are the file's bytes already (MPI 5.0, section 14.5). `out` gets
// one reference. unsupported: a part of it has no size in the file, or it is nested too deep.
Outcome make_file_type(const datatypes::Type& type, const Representation& representation,
                       const datatypes::Type*& out);

}  // namespace headway::io
