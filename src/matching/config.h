// Config and Counters of the matching queues: which design, within which bounds, and what it cost.
// Thread: holder of the engine. Plain values. Invariant: the order of the designs is that of the
// option MATCHER.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/counter.h"
#include "matching/hook.h"

namespace headway::matching {

enum class Design : uint8_t {
  headway,   // a hash of whole keys
  list,      // one list
  source,    // a list for each rank of each communicator
  pnp,       // partners have lists of their own, all others share one
  col_list,  // profiled collectives have lists of their own; point to point: one list
  list_pnp,  // one list for collectives; partners and others for point to point
  col_pnp
};
inline constexpr int designs = 7;
static_assert(int(Design::col_pnp) + 1 == designs);

// Which wildcards the user has promised not to use with a context.
class Promises;

struct Config {
  Design design = Design::headway;
  uint32_t processes = 1;
  // At most so many times the square root of `processes` lists of their own.
  uint32_t collective_cap = 8;
  uint32_t partner_cap = 8;
  uint32_t threshold = 100;  // hooks in one list before partners are taken out of it
  Promises* promises = nullptr;

  uint32_t queues(uint32_t cap) const {
    uint64_t root = 0;
    while (uint64_t(cap) * cap * processes >= (root + 1) * (root + 1)) ++root;
    return uint32_t(root);
  }
};

struct Counters {
  struct Kind {
    base::Counter entries, searches, traversed;
  };
  Kind of[2];  // point to point, collective
  base::Counter longest;
  // Nanoseconds in making lists and deciding how many: rare, so that it is measured always.
  base::Counter overhead_ns;

  Kind& kind(Traffic traffic) { return of[traffic.collective != 0]; }
  uint64_t entries() const { return of[0].entries + of[1].entries; }
  uint64_t searches() const { return of[0].searches + of[1].searches; }
  uint64_t traversed() const { return of[0].traversed + of[1].traversed; }
};

}  // namespace headway::matching
