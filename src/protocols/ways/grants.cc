// Grants: messages that come over slow links come one after the other, in the order in which they
// are needed. Several at once would share the link, and all be there when the last one is. Of a
// message whose receive may be released only the edges are asked for at first; the rest is granted
// when its turn comes: to those whose user waits in MPI first, then to those that lie in closed
// pages, then to others, each kind in the order of their receives. A touched page is granted at
// once.
#include "base/check.h"
#include "base/clock.h"
#include "protocols/core.h"
#include "protocols/ways/pieces.h"
#include "protocols/ways/rate.h"
#include "protocols/ways/stream.h"

namespace headway::protocols {
namespace {

constexpr uint32_t at_once = 2;            // of one kind and better: one may be late to begin
constexpr uint64_t nearly_over_us = 2000;  // on the link: the next one takes as long to begin
constexpr uint64_t nearly_over_least = 16 << 10;

Need need_of(const Request& receive) {
  if (receive.awaited) return Need::awaited;
  return receive.is_redirected() ? Need::closed : Need::none;
}

}  // namespace

bool Streams::withhold(Request* receive) {
  Transfer& transfer = core_.transfer(*receive);
  transfer.withheld = false;
  if (!transfer.expected || receive->notify || transfer.stays || transfer.covered ||
      edges_of(transfer) >= transfer.total) {
    return false;
  }
  line_up(transfer.turn, need_of(*receive));
  const bool waits = next_granted() != receive;
  if (!waits) line_up(transfer.turn, Need::met);
  transfer.withheld = waits;
  withheld_ += waits;
  core_.counters().withheld += waits;
  return waits;
}

// The next one whose turn has come, or null. Thousands may wait, or come and be nearly over: they
// are not looked at.
Request* Streams::next_granted() {
  const Turn* next = nullptr;
  for (int need = int(Need::awaited); !next && need >= 0; --need) next = turns_[need].first();
  if (!next) return nullptr;
  uint32_t before = 0;
  for (Turn* comes = turns_[int(Need::met)].first(); comes && before < at_once;) {
    Turn& turn = *comes;
    comes = comes->list_next;
    const Request& receive = *turn.receive;
    const Transfer& transfer = core_.transfer(receive);
    const uint64_t left = transfer.total - transfer.moved - transfer.partial;
    const uint64_t little = arrival_rate(*receive.peer) * nearly_over_us / 1'000'000;
    if (transfer.stays || receive.notify ||
        left <= (little > nearly_over_least ? little : nearly_over_least)) {
      line_up(turn, Need::ending);
    } else {
      before += need_of(receive) >= next->need;
    }
  }
  return before < at_once ? next->receive : nullptr;
}

// To the others with that need, in the order of the receives. Nearly always it is the last of them,
// or, where their senders began with the last, the first.
void Streams::line_up(Turn& turn, Need need) {
  turns_[int(turn.need)].remove(&turn);
  turn.need = need;
  base::List<Turn>& turns = turns_[int(need)];
  const auto is_before = [&turn](const Turn* other) {
    return turn.receive->serial < other->receive->serial;
  };
  Turn* next = need < Need::met ? turns.first() : nullptr;
  if (next && !is_before(next)) {
    next = nullptr;
    for (Turn* last = turns.last(); is_before(last); last = last->list_prev) next = last;
  }
  next ? turns.insert_before(next, &turn) : turns.push_back(&turn);
}

void Streams::change_turn(const Request* receive) {
  Transfer* transfer = core_.requests().transfers.find(*receive);
  if (transfer && transfer->expected && transfer->withheld &&
      transfer->turn.need != need_of(*receive))
    line_up(transfer->turn, need_of(*receive));
}

uint32_t Streams::count_withheld() const {
  uint32_t count = 0;
  for (const Request* receive = landings_.first(); receive; receive = receive->list_next) {
    const Transfer& transfer = core_.transfer(*receive);
    HEADWAY_CHECK(transfer.withheld ? transfer.turn.need == need_of(*receive)
                                    : transfer.turn.need >= Need::met);
    count += transfer.withheld;
  }
  return count;
}

void Streams::grant_turns() {
  HEADWAY_CHECK(count_withheld() == withheld_);
  while (Request* next = withheld_ ? next_granted() : nullptr) grant(next);
}

void Streams::grant(Request* receive) {
  Transfer& transfer = core_.transfer(*receive);
  HEADWAY_CHECK(transfer.expected && transfer.withheld && withheld_ != 0);
  transfer.withheld = false;
  --withheld_;
  line_up(transfer.turn, Need::met);
  if (transfer.asked_at) transfer.asked_at = base::now_ns();
  FrameHeader header;
  header.kind = uint8_t(Kind::grant);
  header.word = transfer.remote;
  header.source = sharers_of(*receive);
  core_.links().control(*receive->peer, header, nullptr);
}

void Streams::grant_open() {
  HEADWAY_CHECK(count_withheld() == withheld_);
  for (Request* receive = landings_.first(); receive; receive = receive->list_next) {
    if (core_.transfer(*receive).withheld && !receive->is_redirected()) grant(receive);
  }
}

bool Streams::deliver_grant(Peer& peer, const FrameHeader& header, const char*) {
  Request* send =
      core_.requests().by_wire_id(header.word, RequestKind::send, peer, Stage::streaming);
  if (!send) return false;
  Transfer& transfer = core_.transfer(*send);
  if (!transfer.withheld) return false;
  transfer.withheld = false;
  transfer.sharers = sharers_in(header);
  if (!has_sent_edges(transfer)) return true;  // it stands in the line for those
  peer.backlog.streams.push_back(send);
  core_.links().mark_busy(peer);
  stream_some(peer);
  return true;
}

}  // namespace headway::protocols
