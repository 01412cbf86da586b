// Unseen: receives that were released before their match and have none yet, in the order of their
// releases, and what the launcher is told of the first of them. Thread: holder of the engine;
// count() any; the launcher reads `told` at any moment. Owner: Release. Invariant: `told` has a
// serial as long as there is one whose call is known, and another one for each.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/whereabouts.h"
#include "protocols/request.h"

namespace headway::protocols {

class Unseen {
 public:
  // Beside its request, which stays where it is.
  struct Receive {
    const Request* request = nullptr;
    const char* call = nullptr;  // that released it; null: not known
    uintptr_t site = 0;          // where that stands
    Receive* older = nullptr;
    Receive* newer = nullptr;
  };

  uint32_t count() const { return count_.load(std::memory_order_acquire); }
  void add(Receive& receive);
  void remove(Receive& receive);

  base::Unmatched told;

 private:
  void tell();

  std::atomic<uint32_t> count_{0};
  Receive* oldest_ = nullptr;
  Receive* newest_ = nullptr;
  uint64_t serial_ = 0;
};

}  // namespace headway::protocols
