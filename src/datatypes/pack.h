// Pack and unpack with random access: the bytes of `count` elements are one string of
// size * count bytes, and any piece of it can be copied on its own. Thread: any, no state kept.
// Cost of finding a position: a division per loop and a binary search per sequence of the layout,
// so that chunked copies of a long message stay linear. Nothing here allocates.
#pragma once
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "datatypes/type.h"
#include "datatypes/walk.h"

namespace headway::datatypes {

// size * count, or UINT64_MAX where that does not fit.
uint64_t packed_size(const Type& type, uint64_t count);

// Copies bytes [offset, offset + n) of the packed string to `out`; returns how many there were.
size_t pack(const Type& type, const void* base, uint64_t count, uint64_t offset, void* out,
            size_t n);
// Copies `in` over bytes [offset, offset + n) of the packed string; returns how many fitted.
size_t unpack(const Type& type, void* base, uint64_t count, uint64_t offset, const void* in,
              size_t n);

// Copies between two layouts (sendrecv with oneself, MPI_IN_PLACE moves, collective copies), as
// much as both hold; returns the bytes copied. The two must not overlap.
uint64_t copy(const Type& from_type, const void* from, uint64_t from_count, const Type& to_type,
              void* to, uint64_t to_count);

// Upper bound of the runs in `count` elements; exact but for runs that touch from one element to
// the next. 1 if contiguous, 0 if empty.
uint64_t runs(const Type& type, uint64_t count);

// Calls visit(char* at, size_t bytes) for each run of bytes [offset, offset + n), in order, until
// it returns false.
template <class Visit>
void for_each_run(const Type& type, const void* base, uint64_t count, uint64_t offset, uint64_t n,
                  Visit&& visit) {
  detail::RunSink<Visit> sink{visit};
  detail::walk_message(type, base, count, offset, n, sink);
}

struct Filled {
  size_t vectors;
  uint64_t bytes;  // covered by them
};
// Fills up to `max` vectors with the runs from `offset` on; touching runs are joined.
Filled fill_iovecs(const Type& type, const void* base, uint64_t count, uint64_t offset, iovec* out,
                   size_t max);

}  // namespace headway::datatypes
