// HostRing: which host watches which, so that one that vanishes is noticed by others. Thread: init.
// Owner: Process. Invariant: all ranks that know the same cards see the same ring; each rank
// watches one rank of the next host, and those of a host spread over those of the next.
#pragma once
#include <cstdint>

#include "base/vec.h"

namespace headway::runtime {

class HostRing {
 public:
  static constexpr uint32_t nobody = UINT32_MAX;

  // Host of every rank of the job, in order; 0: it is not known.
  [[nodiscard]] bool add(uint64_t host) { return hosts_.push(host); }
  void clear() { hosts_.clear(); }
  // The rank of the next host that `self` watches, and the first one of the host before it.
  uint32_t next(uint32_t self) const;
  uint32_t previous(uint32_t self) const;

 private:
  uint32_t number_on(uint64_t host, uint32_t number) const;

  base::Vec<uint64_t> hosts_;
};

}  // namespace headway::runtime
