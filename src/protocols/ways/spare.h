// Spare: how much of the messages that stream to a peer is given to a slow link at a time. In an
// exchange each rank asks for the other's message while its own streams; the system's buffers take
// 1 MB at once, and with all of that before the answer the two directions took turns. (1 MB at
// 1 Gbit/s, mean of exchanges: 17 ms without this, 11 to 12 with; the wire needs 8.9.) Where
// nothing comes while messages leave there is nothing to gain, and whoever looks needs a core for
// it: so a link that carried long messages in one direction only lately is not spared. Nor is it
// while another message waits to stream behind this one: that has been asked for already. Thread:
// holder of the engine. Owner: Streams. Invariant: of what was spared somebody goes on: a thread
// that waits and looks, or the message thread by a reminder. Where there is neither, nothing is
// spared.
#pragma once
#include <cstdint>

#include "progress/handoff.h"
#include "protocols/peer.h"

namespace headway::protocols {

class Spare {
 public:
  enum class Wish : uint64_t { off, automatic, always };  // as HEADWAY_SPARE spells them

  // `wish` and `count`, of times that something was kept back, are read and written later.
  Spare(progress::Handoff& handoff, const uint64_t& wish, base::Counter& count)
      : handoff_(handoff), wish_(wish), count_(count) {}

  // Bytes on the way to that peer beyond which its link is given no more now, of a message of which
  // so many have left. 0: any number.
  uint64_t enough_for(Peer& peer, uint64_t moved);
  // As many are on their way; what is left waits.
  bool has_enough(Peer& peer, uint64_t enough);
  // A stream from that peer begins, or is over.
  void note_landing(Peer& peer);
  void note_landed(Peer& peer);
  // All of a stream to it has been given to the link.
  void note_left(Peer& peer);
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
  static bool ran_dry(Peer& peer);
  uint64_t busy_for(const Peer& peer, uint64_t us) const;

  progress::Handoff& handoff_;
  const uint64_t& wish_;
  base::Counter& count_;
  bool has_spared_ = false;
  bool thread_goes_ = false;
};

}  // namespace headway::protocols
