#include "protocols/ways/spare.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "guard/mechanism.h"
#include "protocols/ways/rate.h"

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
constexpr uint64_t end_of_row = 256 << 10;
constexpr uint64_t away_ns = 1'000'000;  // somebody else had its core
constexpr uint64_t dry_ns = 50'000'000;
constexpr uint64_t longest_remind_us = 100'000;
// After so many messages that met none of the other direction, none is expected to.
constexpr uint16_t most_one_way = 8;
constexpr uint64_t still_leaves = 32 << 10;  // bytes on the way: of a message, not of a few frames
// Where links are spared whatever they are, so that tests have it: less than the system takes.
constexpr uint64_t most_forced = 16 << 10;  // bytes

}  // namespace

// At the beginning of a message, where the answer to the other one is due, the least. Later it
// stands behind a quarter of what has gone. Of a row of messages only the last one is spared, with
// no less than the end of a long one has: acknowledgements, too, stand behind what comes, and with
// the least at each beginning a window of messages each way left the links idle.
uint64_t Spare::enough_for(Peer& peer, uint64_t moved) {
  if (wish_ == uint64_t(Wish::off) || !peer.can(transports::in_place)) return 0;
  uint64_t of_row = 0;
  if (wish_ == uint64_t(Wish::automatic)) {
    if (peer.flow.one_way >= most_one_way || peer.backlog.streams.size() > 1) return 0;
    if (peer.flow.ends_row) of_row = end_of_row;
  }
  if (is_watched() && !ran_dry(peer)) {
    const uint64_t enough = busy_for(peer, watched_us);
    return enough ? std::max({enough, std::min(moved / 2, steady), moved / 4, of_row}) : 0;
  }
  if (!handoff_.has_thread()) return 0;
  const uint64_t enough = busy_for(peer, alone_us);
  return enough ? std::max({enough, least_alone, of_row}) : 0;
}

// Two streams meet if one begins before the other is over: the link has some of it still, or one is
// under way when the other is done with.
void Spare::note_landing(Peer& peer) {
  ++peer.flow.landing;
  if (peer.flow.one_way && peer.transport->in_flight(peer.number) >= still_leaves)
    peer.flow.one_way = 0;
}

void Spare::note_landed(Peer& peer) {
  HEADWAY_CHECK(peer.flow.landing);
  --peer.flow.landing;
  if (!peer.backlog.streams.empty()) peer.flow.one_way = 0;
}

void Spare::note_left(Peer& peer) {
  Flow& flow = peer.flow;
  flow.one_way = flow.landing ? uint16_t(0) : std::min(uint16_t(flow.one_way + 1), most_one_way);
  flow.ends_row = !peer.backlog.streams.empty();
}

uint64_t Spare::busy_for(const Peer& peer, uint64_t us) const {
  if (wish_ == uint64_t(Wish::automatic)) {
    return peer.transport->enough(peer.number, us, slow_link);
  }
  const uint64_t enough = peer.transport->enough(peer.number, us, ~uint64_t(0));
  return enough ? std::min(enough, most_forced) : most_forced;
}

bool Spare::has_enough(Peer& peer, uint64_t enough) {
  const bool once_more = peer.flow.spared_at != 0;
  peer.flow.spared_at = 0;
  if (peer.transport->in_flight(peer.number) < enough) return false;
  if (!once_more) ++count_;
  if (is_watched()) {
    has_spared_ = true;
    peer.flow.spared_at = base::now_ns();
  } else {
    // It is gone on with while there is some left.
    const uint64_t rate = peer.transport->rate(peer.number);
    const uint64_t us = rate ? enough * 2 / 3 * 1'000'000 / rate : alone_us;
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
bool Spare::ran_dry(Peer& peer) {
  Flow& flow = peer.flow;
  const uint64_t now = base::now_ns();
  if (flow.spared_at && now - flow.spared_at > away_ns) flow.dry_until = now + dry_ns;
  return now < flow.dry_until;
}

}  // namespace headway::protocols
