// external32: the standard's portable data representation: big-endian, without gaps, and with sizes
// that are the same on every machine. Thread: any, no state kept. Invariant: callers made sure that
// the size of the packed data fits 64 bits.
#pragma once
#include <cstdint>

#include "base/outcome.h"
#include "datatypes/type.h"

namespace headway::datatypes {

// Bytes that `count` elements take. All three fail (unsupported) where structs are nested deeper
// than max_depth.
Outcome external32_size(const Type& type, uint64_t count, uint64_t& bytes);
// `out` has room for all. bad_argument: a value does not fit, as external32 gives MPI_LONG four
// bytes and MPI_WCHAR two.
Outcome pack_external32(const Type& type, const void* base, uint64_t count, char* out);
// `in` holds all.
Outcome unpack_external32(const Type& type, void* base, uint64_t count, const char* in);

}  // namespace headway::datatypes
