// What has been sent goes before what may be: pages are sent before their send only while no
// message is on its way out of this host. The system takes a message faster than the link does, and
// what is sent early to one peer would share the link with what another one waits for.
#include <algorithm>

#include "base/clock.h"
#include "protocols/core.h"
#include "protocols/prefetch/presend.h"

namespace headway::protocols {
namespace {

constexpr uint64_t little = 8 << 10;        // of a message: less holds nothing up
constexpr uint64_t stuck_ns = 100'000'000;  // in which a receiver takes none of it
// So long a handshake's answer is waited for, by the time between two sends: a receiver that
// computes gives none.
constexpr uint64_t answer_part = 8, least_answer_ns = 1'000'000;
// Between two looks: a part of the time that the link needs for what is left. Where many ranks
// share a processor and a link is slow, looks in vain are most of what a rank that waits does.
constexpr uint64_t least_leaving_ns = 200'000, most_leaving_ns = 10'000'000;
constexpr uint64_t leaving_part = 2;

}  // namespace

// Buffers are followed from now on, or none any more. The message thread listens for requests then.
void Presends::listen(bool on) {
  core_.handoff().pending += on ? 1 : -1;
  core_.links().watch_pushes(on ? by<&Presends::note_pushed> : nullptr, this);
}

// A pushed frame is on its way to that peer: nothing is sent early beside it.
void Presends::note_pushed(Peer& peer, const FrameHeader& header) {
  if (header.kind != uint8_t(Kind::presend)) note_leaving(peer, header.length);
}

// So much of a message, which has been sent, goes to that peer.
void Presends::note_leaving(Peer& peer, uint64_t bytes) {
  if (bytes < Grid::page) return;
  peer.early.acknowledged_at = base::now_ns();
  peer.early.unacknowledged = ~0ull;
  if (!peer.early.draining) peer.early.draining = draining_.push(&peer);
}

// Its receiver is about to ask for it, unless it is busy.
void Presends::expect_answer(Peer& peer, const Request& send) {
  const uint32_t number = origin_of(send);
  const Origin* origin = number ? origins_.find(number, peer.process) : nullptr;
  const uint64_t period = origin ? origin->period_ns : 0;
  peer.early.answer_until =
      base::now_ns() + std::clamp(period / answer_part, least_answer_ns, stuck_ns);
  note_leaving(peer, send.memory.bytes());
}

// Messages that have been sent are on their way out of this host, or will be as soon as their
// receivers have answered: how long until the next look, or 0 if there are none.
uint64_t Presends::others_leave(uint64_t now) {
  for (size_t i = 0; i < draining_.size();) {
    Peer& peer = *draining_[i];
    if (core_.in_stage(Stage::requested) && now < peer.early.answer_until) return least_leaving_ns;
    const uint64_t left = peer.transport->in_flight(peer.number);
    if (left < peer.early.unacknowledged) {
      peer.early.unacknowledged = left;
      peer.early.acknowledged_at = now;
    }
    if (left > little && now - peer.early.acknowledged_at < stuck_ns) {
      const uint64_t rate = peer.transport->rate(peer.number);
      const uint64_t ns = rate ? (left - little) * 1'000'000'000 / rate / leaving_part : 0;
      return std::clamp(ns, least_leaving_ns, most_leaving_ns);
    }
    peer.early.draining = false;
    draining_.remove_unordered(i);
  }
  return 0;
}

}  // namespace headway::protocols
