#include "protocols/ways/spare.h"

#include <algorithm>

#include "base/clock.h"
#include "guard/mechanism.h"

namespace headway::protocols {
namespace {

// So long a link has enough: while a thread waits and looks all the time; and while nobody does
// before the reminder, which wakes a thread and may take a core from a computation.
constexpr uint64_t watched_us = 250;
constexpr uint64_t alone_us = 3000;
constexpr uint64_t least_alone = 192 << 10;  // bytes
// So much is soon on the way of a message that is longer: with less, two streams that meet do not
// keep a link of 100 Mbit/s busy both ways.
constexpr uint64_t steady = 96 << 10;
constexpr uint64_t away_ns = 1'000'000;  // somebody else had its core
constexpr uint64_t dry_ns = 50'000'000;
constexpr uint64_t longest_remind_us = 100'000;

}  // namespace

// At the beginning of a message, where the answer to the other one is due, the least. Later it
// stands behind a quarter of what has gone.
uint64_t Spare::enough_for(const Peer& peer, uint64_t moved) {
  if (!peer.can(transports::in_place)) return 0;
  if (is_watched() && !ran_dry()) {
    const uint64_t enough = peer.transport->enough(peer.number, watched_us);
    return enough ? std::max({enough, std::min(moved / 2, steady), moved / 4}) : 0;
  }
  if (!handoff_.has_thread()) return 0;
  const uint64_t enough = peer.transport->enough(peer.number, alone_us);
  return enough ? std::max(enough, least_alone) : 0;
}

bool Spare::has_enough(const Peer& peer, uint64_t enough) {
  spared_at_ = 0;
  if (peer.transport->in_flight(peer.number) < enough) return false;
  if (is_watched()) {
    has_spared_ = true;
    spared_at_ = base::now_ns();
  } else {
    // It is gone on with while there is some left.
    const uint64_t rate = peer.transport->rate(peer.number);
    const uint64_t us = enough * 2 / 3 * 1'000'000 / (rate ? rate : 1);
    handoff_.remind(uint32_t(std::min(us, longest_remind_us)));
  }
  return true;
}

uint64_t Spare::piece_of(uint64_t enough) {
  return std::max(enough / 4 / guard::page_bytes, uint64_t(1)) * guard::page_bytes;
}

// By a thread that is back at once.
bool Spare::is_watched() const {
  return handoff_.driver == progress::Driver::waiting && !thread_goes_;
}

// Whoever spares a link and then does not have a core lets it run dry: for a while it is not taken
// for one that is back at once.
bool Spare::ran_dry() {
  const uint64_t now = base::now_ns();
  if (spared_at_ && now - spared_at_ > away_ns) dry_until_ = now + dry_ns;
  return now < dry_until_;
}

}  // namespace headway::protocols
