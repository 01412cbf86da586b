// Random byte layouts: a datatype, and beside it the plain list of runs that it must mean. Thread:
// one. Owner: the program; free() gives the type back. Invariant: the runs hold exactly `bytes`
// bytes, in the order of the type map, inside [0, span), and never overlap.
#pragma once
#include "check.h"

namespace layouts {

struct Run {
  size_t offset, length;
};

struct Layout {
  MPI_Datatype type = MPI_BYTE;
  int count = 0;
  size_t bytes = 0;  // what `count` of the type hold
  size_t span = 0;   // what the buffer must have
  std::vector<Run> runs;

  void add(size_t offset, size_t length) {
    if (length == 0) return;
    runs.push_back({offset, length});
    bytes += length;
    span = std::max(span, offset + length);
  }
  void free() {
    if (type != MPI_BYTE) MPI(MPI_Type_free(&type));
  }
  // Puts the message's first `length` bytes where the type says.
  void scatter(uint8_t* buffer, uint64_t key, size_t length) const {
    size_t at = 0;
    for (const Run& r : runs) {
      for (size_t i = 0; i < r.length && at < length; ++i, ++at)
        buffer[r.offset + i] = check::byte_of(key, at);
    }
  }
  // What the buffer must hold now: the message where the type says, `gap` everywhere else.
  void verify(const std::vector<uint8_t>& buffer, uint64_t key, size_t length, uint8_t gap,
              int line) const {
    std::vector<uint8_t> wanted(buffer.size(), gap);
    scatter(wanted.data(), key, length);
    if (buffer == wanted) return;
    size_t i = 0;
    while (buffer[i] == wanted[i]) ++i;
    check::fail(__FILE__, line,
                "layout of %zu bytes in %zu runs: buffer byte %zu is %02x, not %02x", bytes,
                runs.size(), i, buffer[i], wanted[i]);
  }
};

inline Layout plain(size_t bytes) {
  Layout l;
  l.count = static_cast<int>(bytes);
  l.add(0, bytes);
  return l;
}

inline Layout vector_of(check::Random& random, size_t bytes) {
  Layout l;
  size_t block = 1 + random.below(random.chance(50) ? 16 : 300);
  size_t stride = block + random.below(64);
  size_t blocks = (bytes + block - 1) / block;
  if (random.chance(50)) {
    MPI(MPI_Type_vector(static_cast<int>(blocks), static_cast<int>(block), static_cast<int>(stride),
                        MPI_BYTE, &l.type));
  } else {
    MPI(MPI_Type_create_hvector(static_cast<int>(blocks), static_cast<int>(block),
                                static_cast<MPI_Aint>(stride), MPI_BYTE, &l.type));
  }
  l.count = 1;
  for (size_t i = 0; i < blocks; ++i) l.add(i * stride, block);
  return l;
}

inline Layout indexed(check::Random& random, size_t bytes) {
  Layout l;
  std::vector<int> lengths, places;
  std::vector<MPI_Aint> byte_places;
  size_t limit = 1 + bytes / 20;
  for (size_t at = 0; l.bytes < bytes;) {
    at += random.below(40);
    size_t length = random.below(limit + 30);
    lengths.push_back(static_cast<int>(length));
    places.push_back(static_cast<int>(at));
    byte_places.push_back(static_cast<MPI_Aint>(at));
    l.add(at, length);
    at += length;
  }
  l.count = 1;
  int n = static_cast<int>(lengths.size());
  if (random.chance(50)) {
    MPI(MPI_Type_indexed(n, lengths.data(), places.data(), MPI_BYTE, &l.type));
  } else {
    MPI(MPI_Type_create_hindexed(n, lengths.data(), byte_places.data(), MPI_BYTE, &l.type));
  }
  return l;
}

// Blocks from the back to the front: the type map's order is not the order in memory.
inline Layout backwards(check::Random& random, size_t bytes) {
  Layout l;
  size_t block = 1 + random.below(100);
  size_t blocks = (bytes + block - 1) / block;
  std::vector<int> places;
  for (size_t i = 0; i < blocks; ++i) {
    size_t at = (blocks - 1 - i) * (block + 3);
    places.push_back(static_cast<int>(at));
    l.add(at, block);
  }
  l.count = 1;
  MPI(MPI_Type_create_indexed_block(static_cast<int>(blocks), static_cast<int>(block),
                                    places.data(), MPI_BYTE, &l.type));
  return l;
}

// A struct of two fields with a hole, resized to a larger extent, several of them.
inline Layout records(check::Random& random, size_t bytes) {
  Layout l;
  size_t first = 1 + random.below(30), second = 1 + random.below(60);
  size_t hole = random.below(9), tail = random.below(17);
  size_t extent = first + hole + second + tail;
  size_t count = (bytes + first + second - 1) / (first + second);
  int lengths[2] = {static_cast<int>(first), static_cast<int>(second)};
  MPI_Aint places[2] = {0, static_cast<MPI_Aint>(first + hole)};
  MPI_Datatype parts[2] = {MPI_BYTE, MPI_BYTE};
  MPI_Datatype record = MPI_DATATYPE_NULL, resized = MPI_DATATYPE_NULL;
  MPI(MPI_Type_create_struct(2, lengths, places, parts, &record));
  MPI(MPI_Type_create_resized(record, 0, static_cast<MPI_Aint>(extent), &resized));
  MPI(MPI_Type_free(&record));
  MPI(MPI_Type_dup(resized, &l.type));
  MPI(MPI_Type_free(&resized));
  l.count = static_cast<int>(count);
  for (size_t i = 0; i < count; ++i) {
    l.add(i * extent, first);
    l.add(i * extent + first + hole, second);
  }
  return l;
}

// A committed layout that holds at least `bytes` bytes.
inline Layout make(check::Random& random, size_t bytes) {
  Layout l;
  switch (random.below(6)) {
    case 0: l = vector_of(random, bytes); break;
    case 1: l = indexed(random, bytes); break;
    case 2: l = backwards(random, bytes); break;
    case 3: l = records(random, bytes); break;
    default: return plain(bytes);
  }
  MPI(MPI_Type_commit(&l.type));
  return l;
}

}  // namespace layouts
