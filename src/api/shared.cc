#include "api/detail/shared.h"

#include <algorithm>

#include "base/vec.h"

namespace headway::api {
namespace {

using protocols::UserMemory;

constexpr int most_runs = 8;  // of one block with gaps

// A run of bytes of a block, as addresses: with MPI_BOTTOM there is no object to point into.
struct Piece {
  uintptr_t from, to;
  int block;
  bool written;
};
using Pieces = base::Vec<Piece>;

struct Hull {
  uintptr_t from = UINTPTR_MAX, to = 0;
};

uintptr_t number_of(const char* at) { return reinterpret_cast<uintptr_t>(at); }

Hull hull_of(const Side& side) {
  Hull hull;
  for (int block = 0; block < side.count(); ++block) {
    const UserMemory memory = side[block].memory();
    if (memory.bytes() == 0) continue;
    const UserMemory::Extent extent = memory.extent();
    hull.from = std::min(hull.from, number_of(extent.from));
    hull.to = std::max(hull.to, number_of(extent.to));
  }
  return hull;
}

bool add_runs(const UserMemory& memory, int block, bool written, Pieces& pieces) {
  if (memory.is_flat()) {
    const uintptr_t from = number_of(memory.flat());
    return pieces.push({from, from + memory.bytes(), block, written});
  }
  bool added = true;
  int runs = 0;
  memory.for_each_run(0, memory.bytes(), [&](const char* at, size_t n) {
    added = pieces.push({number_of(at), number_of(at) + n, block, written});
    return added && ++runs < most_runs;
  });
  return added;
}

bool add_all(const Side& side, bool written, Pieces& pieces) {
  for (int block = 0; block < side.count(); ++block) {
    const UserMemory memory = side[block].memory();
    if (memory.bytes() != 0 && !add_runs(memory, block, written, pieces)) return false;
  }
  return true;
}

// Finds a piece that is read and one that is written with a byte in common: in the order of their
// addresses, a piece meets an earlier one of the other kind exactly if it meets the one of those
// that reaches furthest.
bool find_shared(Pieces& pieces, int& read, int& written) {
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.from < b.from; });
  const Piece* furthest[2] = {nullptr, nullptr};
  for (const Piece& piece : pieces) {
    const Piece* other = furthest[!piece.written];
    if (other && other->to > piece.from) {
      read = (piece.written ? other : &piece)->block;
      written = (piece.written ? &piece : other)->block;
      return true;
    }
    const Piece*& own = furthest[piece.written];
    if (!own || own->to < piece.to) own = &piece;
  }
  return false;
}

[[gnu::cold]] int raise_shared(const Story& story, const Side& in, int read, const Side& out,
                               int written, const char* remedy) {
  Story told = story;
  if (out.has_blocks()) {
    told.count = int64_t(out[written].count);
    told.type = out[written].type;
  }
  base::Text<200> why;
  why << shared_buffers;
  const auto tell = [&why](const char* before, const Side& side, int block) {
    why << before;
    if (side.neighbours()) why << "neighbour " << block << ", ";
    why << "rank " << (side.neighbours() ? side.neighbours()[block] : block);
  };
  if (in.has_blocks()) tell(": the block for ", in, read);
  if (out.has_blocks())
    tell(in.has_blocks() ? " and the block from " : ": the block from ", out, written);
  return raise(told, MPI_ERR_BUFFER, why.c_str(),
               remedy
                   ? remedy
                   : "pass MPI_IN_PLACE as the send buffer if the result is to replace the data, "
                     "or use a second buffer",
               shared_cause);
}

}  // namespace

int refuse_shared(const Story& story, const Side& in, const Side& out, const char* remedy) {
  const Hull reads = hull_of(in), writes = hull_of(out);
  if (reads.from >= writes.to || writes.from >= reads.to) [[likely]]
    return MPI_SUCCESS;
  Pieces pieces;
  // Without memory nothing is found, and nothing is wrong with the call.
  if (!add_all(in, false, pieces) || !add_all(out, true, pieces)) return MPI_SUCCESS;
  int read = 0, written = 0;
  if (!find_shared(pieces, read, written)) return MPI_SUCCESS;
  return raise_shared(story, in, read, out, written, remedy);
}

}  // namespace headway::api
