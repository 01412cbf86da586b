// Layout: where the elements of an operation lie in the target's memory, by the target's datatype,
// which only the origin knows: it is cut into runs, and each frame has some of them. Thread: that
// of its owner. Owner: a call of the origin. Invariant: the runs of all cuts together are the
// type's, in the order of its message, and no element is torn where the cut knows elements.
#pragma once
#include <cstdint>

#include "datatypes/type.h"
#include "rma/element.h"
#include "rma/wire.h"

namespace headway::rma {

class Layout {
 public:
  // `work`: whose elements stay whole; null: bytes, of which short runs stay whole.
  Layout(int64_t at, uint64_t count, const datatypes::Type& type, const Work* work)
      : at_(at), count_(count), type_(type), work_(work) {}

  uint64_t bytes() const { return count_ * type_.size(); }

  struct Room {
    uint64_t body;               // for the runs, and with them the bytes if `has_data`
    bool has_data;               // the bytes go with the runs
    uint64_t bytes = most_body;  // of the runs in all: an answer has to hold them
  };
  // The runs from byte `from` of the message on, as many as fit; how many bytes they are, which is
  // 0 only at the end.
  uint64_t cut(uint64_t from, const Room& room, Run (&runs)[most_runs], uint32_t& n) const;

 private:
  class Filling;

  int64_t at_;
  uint64_t count_;
  const datatypes::Type& type_;
  const Work* work_;
};

}  // namespace headway::rma
