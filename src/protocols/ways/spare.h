// Spare: how much of the messages that stream to a peer is given to a slow link at a time. In an
// exchange each rank asks for the other's message while its own streams; the system's buffers take
// 1 MB at once, and with all of that before the answer the two directions took turns. (1 MB at
// 1 Gbit/s, mean of exchanges: 17 ms without this, 11 to 12 with; the wire needs 8.9.)
// Thread: holder of the engine. Owner: Streams. Invariant: of what was spared somebody goes on: a
// thread that waits and looks, or the message thread by a reminder. Where there is neither, nothing
// is spared.
#pragma once
#include <cstdint>

#include "progress/handoff.h"
#include "protocols/peer.h"

namespace headway::protocols {

class Spare {
 public:
  explicit Spare(progress::Handoff& handoff) : handoff_(handoff) {}

  // Bytes on the way to that peer beyond which its link is given no more now, of a message of which
  // so many have left. 0: any number.
  uint64_t enough_for(const Peer& peer, uint64_t moved);
  // As many are on their way; what is left waits.
  bool has_enough(const Peer& peer, uint64_t enough);
  // The length of a frame: a few are on the way, so that the link goes on while the acknowledgement
  // of one comes back.
  static uint64_t piece_of(uint64_t enough);

  // A thread that waits has spared something. It is back at once; before it sleeps or goes on, the
  // link is given enough for longer: by what is called between these two.
  bool has_spared() const { return has_spared_; }
  void thread_goes() {
    has_spared_ = false;
    thread_goes_ = true;
  }
  void thread_is_gone() { thread_goes_ = false; }

 private:
  bool is_watched() const;
  bool ran_dry();

  progress::Handoff& handoff_;
  bool has_spared_ = false;
  bool thread_goes_ = false;
  uint64_t spared_at_ = 0;  // ns; when a thread that waits looked last, and spared; 0: it did not
  uint64_t dry_until_ = 0;  // ns
};

}  // namespace headway::protocols
