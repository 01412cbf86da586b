// Patience: how long a receive waits for its match before its user is released without. As long as
// closing its pages may cost, so that whoever is wrong loses no more than that. Thread: the one
// that waits. Owner: the call. Invariant: without early release before the match it never ends.
#pragma once
#include "base/clock.h"
#include "waiting/waiter.h"

namespace headway::waiting {

class Patience {
 public:
  // `may_end`: the call, its status and its communicator allow for it.
  Patience(protocols::Engine& engine, bool may_end)
      : engine_(engine), may_end_(may_end && engine.may_foresee()) {}

  // How long a wait may sleep without looking.
  int sleep_ms() const { return may_end_ ? 1 : Waiter::sleep_ms; }

  // Engine held. Once it is true, everything outside allows for a release.
  bool is_over() {
    if (!may_end_) [[likely]]
      return false;
    if (was_over_) return true;
    const uint64_t now = base::now_ns();
    if (since_ == 0) since_ = now;
    if (now - since_ < engine_.patience_us() * 1000) return false;
    may_end_ = was_over_ = engine_.is_alone();
    return was_over_;
  }

 private:
  protocols::Engine& engine_;
  bool may_end_;
  bool was_over_ = false;
  uint64_t since_ = 0;
};

}  // namespace headway::waiting
