// Walking a layout from any byte on: the one traversal behind pack, unpack and run lists.
// A Sink has run(address, bytes) and strided(address, bytes, stride, count), both inlined; each
// returns false to stop the walk. Thread: any. Invariant: skip + n never exceeds what the node
// holds, and n is not 0. Addresses are integers: with MPI_BOTTOM there is no object to point into.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "datatypes/type.h"

namespace headway::datatypes::detail {

template <class Sink>
bool walk(const Node& node, uintptr_t at, uint64_t skip, uint64_t n, Sink& sink);

inline uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Whole passes over one body. Loops of runs and of short records, which programs use most, stay
// out of the recursion.
template <class Sink>
bool walk_passes(const Node& body, uintptr_t at, int64_t stride, uint64_t count, Sink& sink) {
  if (body.kind == Node::Kind::run) {
    return sink.strided(at + uintptr_t(body.offset), body.bytes, stride, count);
  }
  if (body.kind == Node::Kind::sequence && body.plain) {
    at += uintptr_t(body.offset);
    const Entry* const end = body.entries + body.count;
    for (uint64_t i = 0; i < count; ++i, at += uintptr_t(stride)) {
      for (const Entry* entry = body.entries; entry != end; ++entry) {
        if (!sink.run(at + uintptr_t(entry->offset), entry->bytes)) return false;
      }
    }
    return true;
  }
  for (uint64_t i = 0; i < count; ++i, at += uintptr_t(stride)) {
    if (!walk(body, at, 0, body.bytes, sink)) return false;
  }
  return true;
}

template <class Sink>
bool walk_loop(const Node& body, uintptr_t at, int64_t stride, uint64_t skip, uint64_t n,
               Sink& sink) {
  if (const uint64_t pass = skip / body.bytes; pass != 0) {
    at += pass * uintptr_t(stride);
    skip -= pass * body.bytes;
  }
  if (skip != 0) {
    const uint64_t part = smaller(body.bytes - skip, n);
    if (!walk(body, at, skip, part, sink)) return false;
    at += uintptr_t(stride);
    n -= part;
  }
  const uint64_t whole = n / body.bytes;
  if (whole != 0 && !walk_passes(body, at, stride, whole, sink)) return false;
  n -= whole * body.bytes;
  return n == 0 || walk(body, at + whole * uintptr_t(stride), 0, n, sink);
}

// The entry that holds byte `skip` of the sequence.
inline const Entry* find_entry(const Node& node, uint64_t skip) {
  uint64_t low = 0;
  uint64_t high = node.count;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (node.entries[middle].before <= skip ? low : high) = middle;
  }
  return node.entries + low;
}

template <class Sink>
bool walk_sequence(const Node& node, uintptr_t at, uint64_t skip, uint64_t n, Sink& sink) {
  const Entry* entry = skip ? find_entry(node, skip) : node.entries;
  skip -= entry->before;
  for (; n != 0; ++entry, skip = 0) {
    const uint64_t part = smaller(entry->bytes - skip, n);
    const bool more = entry->node
                          ? walk(*entry->node, at + uintptr_t(entry->offset), skip, part, sink)
                          : sink.run(at + uintptr_t(entry->offset) + skip, part);
    if (!more) return false;
    n -= part;
  }
  return true;
}

template <class Sink>
bool walk(const Node& node, uintptr_t at, uint64_t skip, uint64_t n, Sink& sink) {
  HEADWAY_CHECK(n != 0 && skip <= node.bytes && n <= node.bytes - skip);
  at += uintptr_t(node.offset);
  switch (node.kind) {
    case Node::Kind::run: return sink.run(at + skip, n);
    case Node::Kind::loop: return walk_loop(*node.body, at, node.stride, skip, n, sink);
    case Node::Kind::sequence: return walk_sequence(node, at, skip, n, sink);
  }
  return false;
}

// Bytes [offset, offset + n) of `count` elements at `base`, cut to what there is.
template <class Sink>
void walk_message(const Type& type, const void* base, uint64_t count, uint64_t offset, uint64_t n,
                  Sink& sink) {
  uint64_t total;
  if (__builtin_mul_overflow(type.size(), count, &total)) total = UINT64_MAX;
  if (offset >= total) return;
  n = smaller(n, total - offset);
  if (n == 0) return;
  const uintptr_t at = reinterpret_cast<uintptr_t>(base);
  if (type.is_contiguous(count)) {
    sink.run(at + uintptr_t(type.true_lb()) + offset, n);
  } else {
    walk_loop(type.layout(), at, type.extent(), offset, n, sink);
  }
}

// Hands every run to a callable visit(char*, size_t) -> bool.
template <class Visit>
struct RunSink {
  Visit& visit;
  bool run(uintptr_t at, uint64_t bytes) {
    return visit(reinterpret_cast<char*>(at), size_t(bytes));
  }
  bool strided(uintptr_t at, uint64_t bytes, int64_t stride, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i, at += uintptr_t(stride)) {
      if (!run(at, bytes)) return false;
    }
    return true;
  }
};

}  // namespace headway::datatypes::detail
