// Pieces: how a long broadcast is cut. Thread: any. Owns nothing. Invariants: the pieces cover the
// message in order, and none is empty; the first one's length tells how many there are, so that a
// rank which expects fewer is told, and does not take a part for the whole.
#pragma once
#include <cstdint>

#include "base/check.h"

namespace headway::collectives {

class Pieces {
 public:
  explicit Pieces(uint64_t bytes) : bytes_(bytes) {
    const uint64_t even = (bytes / most + page) & ~(page - 1);
    length_ = even > shortest ? even : shortest;
    if (bytes <= length_) {
      count_ = bytes > 0;
      return;
    }
    count_ = (bytes + length_ - 1) / length_;
    while (count_ * length_ < bytes + shorter()) ++count_;
    HEADWAY_CHECK(shorter() < length_ && start(count_ - 1) < bytes);
  }
  uint64_t count() const { return count_; }
  uint64_t start(uint64_t piece) const {
    if (piece == 0) return 0;
    return piece >= count_ ? bytes_ : piece * length_ - shorter();
  }
  uint64_t length(uint64_t piece) const { return start(piece + 1) - start(piece); }

 private:
  // Of so many bytes no wire wants a handshake (EAGER_MAX_TCP).
  static constexpr uint64_t shortest = 16 << 10;
  // A schedule of ever more steps gains nothing.
  static constexpr uint64_t most = 1024;
  static constexpr uint64_t page = 4 << 10;

  // What the first of several lacks; the others begin where a number may.
  uint64_t shorter() const { return 8 * count_; }

  uint64_t bytes_, length_ = 0, count_ = 0;
};

}  // namespace headway::collectives
