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

enum Need : int { none, closed, awaited };

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
  transfer.withheld = true;
  const bool waits = next_granted() != receive;
  transfer.withheld = waits;
  withheld_ += waits;
  core_.counters().withheld += waits;
  return waits;
}

// The next one whose turn has come, or null.
Request* Streams::next_granted() const {
  Request* next = nullptr;
  for (Request* receive = landings_.first(); receive; receive = receive->list_next) {
    if (!core_.transfer(*receive).withheld) continue;
    if (!next || need_of(*receive) > need_of(*next) ||
        (need_of(*receive) == need_of(*next) && receive->serial < next->serial)) {
      next = receive;
    }
  }
  if (!next) return nullptr;
  uint32_t before = 0;
  for (Request* receive = landings_.first(); receive; receive = receive->list_next) {
    const Transfer& transfer = core_.transfer(*receive);
    if (transfer.withheld || transfer.stays || receive->notify ||
        need_of(*receive) < need_of(*next)) {
      continue;
    }
    const uint64_t left = transfer.total - transfer.moved - transfer.partial;
    const uint64_t little = arrival_rate(*receive->peer) * nearly_over_us / 1'000'000;
    before += left > (little > nearly_over_least ? little : nearly_over_least);
  }
  return before < at_once ? next : nullptr;
}

uint32_t Streams::count_withheld() const {
  uint32_t count = 0;
  for (const Request* receive = landings_.first(); receive; receive = receive->list_next) {
    count += core_.transfer(*receive).withheld;
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
  if (transfer.asked_at) transfer.asked_at = base::now_ns();
  FrameHeader header;
  header.kind = uint8_t(Kind::grant);
  header.word = transfer.remote;
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
  if (!has_sent_edges(transfer)) return true;  // it stands in the line for those
  peer.backlog.streams.push_back(send);
  core_.links().mark_busy(peer);
  stream_some(peer);
  return true;
}

}  // namespace headway::protocols
