// Touches: closed pages that somebody has touched and that are not open yet, for a recorder that
// listens. Thread: with Guard's lock. Owner: Guard. Invariant: empty as long as nobody listens; a
// page stands in it once for each touch that the kernel, or our handler, has told of.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/events.h"

namespace headway::guard {

class Touches {
 public:
  bool any() const { return count_ != 0; }
  // Page `page` of the pages that were closed as number `closing`.
  void begin(uint32_t closing, size_t page) {
    const base::EventBegin began = base::begin_event();
    if (!began) [[likely]]
      return;
    if (count_ == most) return base::lose_event();
    touches_[count_++] = {began, closing, page};
  }
  // That page is open, or nobody need wait for it any longer.
  [[gnu::cold]] void end(uint32_t closing, size_t page, size_t bytes) {
    for (size_t i = 0; i < count_;) {
      const Touch& touch = touches_[i];
      if (touch.closing != closing || touch.page != page) {
        ++i;
        continue;
      }
      base::end_event(touch.began,
                      {.kind = headway_event_fault, .bytes = bytes, .closing = closing});
      touches_[i] = touches_[--count_];
    }
  }
  void clear() { count_ = 0; }

 private:
  static constexpr size_t most = 64;  // threads that wait at once
  struct Touch {
    base::EventBegin began;
    uint32_t closing = 0;
    size_t page = 0;
  };

  Touch touches_[most];
  size_t count_ = 0;
};

}  // namespace headway::guard
