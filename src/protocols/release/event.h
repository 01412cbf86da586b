// Release event: what a recorder is told of one receive that returned early. Thread: holder of the
// engine. Owner: the receive's row in Release. Invariant: it begins with its user's return, if
// somebody listens, and is told once, when its data are whole.
#pragma once
#include <cstdint>

#include "base/events.h"
#include "protocols/peer.h"
#include "protocols/request.h"

namespace headway::protocols {

class ReleaseEvent {
 public:
  // `come`: bytes of its message that are in their place; `closing`: which closed pages they are.
  void begin(uint64_t come, uint32_t closing) {
    returned_ = base::begin_event();
    come_ = come;
    closing_ = closing;
  }
  void end(const Request& receive) const {
    if (!returned_) [[likely]]
      return;
    const uint64_t all = receive.cancelled ? 0 : receive.status_bytes();
    const int32_t peer = receive.peer ? int32_t(receive.peer->process) : headway_no_peer;
    base::end_event(returned_, {.kind = headway_event_release,
                                .bytes = all > come_ ? all - come_ : 0,
                                .peer = peer,
                                .closing = closing_});
  }

 private:
  base::EventBegin returned_;
  uint64_t come_ = 0;
  uint32_t closing_ = 0;
};

}  // namespace headway::protocols
