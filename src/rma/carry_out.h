// Carry out: what a frame asks of a window's memory, done. The same serves an origin that can touch
// the target's memory itself. Thread: holder of the engine. Owns nothing. Invariant: nothing is
// done of what is not wholly right.
#pragma once
#include <cstdint>

#include "rma/element.h"
#include "rma/memory.h"
#include "rma/wire.h"

namespace headway::rma {

enum class Carried : uint8_t {
  done,
  refused,  // some of it is not in a dynamic window: the origin has to hear of it
  garbage   // no origin sends that
};

// The places that a body names, and what it brings for them.
class Places {
 public:
  // False: the body is none.
  bool read(const char* body, uint32_t length);

  const Head& head() const { return head_; }
  uint32_t count() const { return head_.runs; }
  Run run(uint32_t i) const;
  const char* data() const { return data_; }
  uint64_t data_bytes() const { return data_bytes_; }
  uint64_t bytes() const { return bytes_; }  // of all runs

 private:
  Head head_{};
  const char* runs_ = nullptr;
  const char* data_ = nullptr;
  uint64_t data_bytes_ = 0;
  uint64_t bytes_ = 0;
};

Carried put(const Memory& memory, const Places& places);
// `out` has room for places.bytes().
Carried get(const Memory& memory, const Places& places, char* out);
// `before`: the same, or null: nobody asks what was there.
Carried accumulate(const Memory& memory, const Places& places, const Work& work, char* before);
// Of one element.
Carried swap(const Memory& memory, const Places& places, const Work& work, char* before);

}  // namespace headway::rma
