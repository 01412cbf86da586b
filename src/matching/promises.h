// Promises: contexts whose user has promised (mpi_assert_no_any_source, mpi_assert_no_any_tag) not
// to use some wildcards, so that nothing need be done for them. Thread: holder of the engine.
// Owner: the engine. Invariant: a promise that is broken costs time and nothing else.
#pragma once
#include "matching/config.h"
#include "matching/map.h"

namespace headway::matching {

class Promises {
 public:
  // Kinds of wildcards that are not used with the context, one bit each (wild_kind).
  uint8_t of(uint64_t context) const {
    const uint8_t* kinds = map_.find(context);
    return kinds ? *kinds : 0;
  }
  void note(uint64_t context, bool no_any_source, bool no_any_tag) {
    // Kind 0: any source; 1: any tag; 2: both.
    const auto kinds = uint8_t((no_any_source ? 1 | 4 : 0) | (no_any_tag ? 2 | 4 : 0));
    if (kinds == of(context)) return;
    forget(context);
    // Without memory it is as if nothing had been promised.
    if (kinds) (void)map_.insert(context, kinds);
    ++version_;
  }
  void forget(uint64_t context) {
    if (!map_.find(context)) return;
    map_.erase(context);
    ++version_;
  }
  // Another one after each change: what was left undone may be needed now.
  uint32_t version() const { return version_; }
  size_t count() const { return map_.count(); }

 private:
  Map<uint8_t> map_;
  uint32_t version_ = 0;
};

}  // namespace headway::matching
