// Plan: who writes and reads what in a collective access: each rank for itself, or in two phases,
// in which the file's range is cut in stretches that are dealt out to ranks, the owners. Round by
// round each owner has one stretch. Thread: any. Owner: the access. Invariants: all ranks come to
// the same plan, which depends on what all have told alone; every byte of the range has one owner
// and round.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/vec.h"
#include "io/hints.h"
#include "io/view.h"

namespace headway::io {

// What each rank tells of its part: all of it in words, as it travels.
struct Part {
  int64_t low = 0, high = 0;  // of the file, if it has bytes
  int64_t bytes = 0;
  int64_t runs = 0;  // about
  int64_t writes = 0;
  int64_t alone = 0;                // not 0: for itself, whatever the others have
  int64_t wish = 0;                 // Hints::Wish
  int64_t stretch = 0, owners = 0;  // by its hints; those of the first rank count
};
inline constexpr size_t part_words = sizeof(Part) / sizeof(int64_t);

class Plan {
 public:
  // Whether all of them do the same. Else they have met by a mistake of the program.
  static bool agree(const Part* parts, int ranks);
  // `nodes`: of the communicator, as far as that is known.
  void decide(const Part* parts, int ranks, int nodes);

  bool has_two_phases() const { return owners_ > 0; }
  uint64_t owners() const { return owners_; }
  uint64_t rounds() const { return rounds_; }
  uint64_t stretch() const { return stretch_; }
  int rank_of(uint64_t owner) const { return int(owner * uint64_t(ranks_) / owners_); }
  // Which owner a rank is; owners() for one that is none.
  uint64_t owner_of(int rank) const;
  // The number of the stretch that a place lies in, from 0 on; which owner and round it has.
  uint64_t stretch_at(int64_t place) const { return uint64_t(place) / stretch_ - first_; }
  uint64_t owner_at(uint64_t stretch) const { return stretch % owners_; }
  uint64_t round_at(uint64_t stretch) const { return stretch / owners_; }
  uint64_t stretch_of(uint64_t owner, uint64_t round) const { return round * owners_ + owner; }
  // The first byte of a stretch in the file.
  int64_t start_of(uint64_t stretch) const { return int64_t((first_ + stretch) * stretch_); }

 private:
  uint64_t owners_ = 0;
  uint64_t rounds_ = 0;
  uint64_t stretch_ = 1;
  uint64_t first_ = 0;  // stretches below the range
  int ranks_ = 1;
};

// The bytes of a rank's part that lie in one stretch.
struct Slice {
  uint64_t stretch;
  uint64_t from;  // byte of the access
  uint32_t bytes;
  uint32_t runs;
};
// All of bytes [at, at + n) of a view, in order, which is that of the file. False without memory.
[[nodiscard]] bool cut(const Plan& plan, const View& view, uint64_t at, uint64_t n,
                       base::Vec<Slice>& slices);

// This rank's part of an access to bytes [at, at + n) of a view.
Part part_of(const View& view, uint64_t at, uint64_t n, const Hints& hints, bool writes,
             bool alone);

}  // namespace headway::io
