#include "protocols/ways/rate.h"

#include "base/clock.h"

namespace headway::protocols {
namespace {

// Shorter waits than this do not pay for waking the message thread.
constexpr uint64_t least_wait_us = 150;

}  // namespace

// How fast messages come from that peer, with what they wait for on their way.
void rate(Peer& peer, Transfer& transfer) {
  if (!transfer.asked_at) return;
  const uint64_t took = base::now_ns() - transfer.asked_at;
  transfer.asked_at = 0;
  const uint64_t now = transfer.total * 1'000'000'000 / (took ? took : 1);
  uint64_t& known = peer.flow.arrival_rate;
  known = known ? (3 * known + now) / 4 : now;
}

uint64_t arrival_rate(const Peer& peer) {
  return peer.flow.arrival_rate ? peer.flow.arrival_rate : peer.transport->rate(peer.number);
}

uint64_t expected_us(const Peer& peer, const Transfer& transfer) {
  const uint64_t rate = arrival_rate(peer);
  return rate ? (transfer.total - transfer.moved - transfer.partial) * 1'000'000 / rate : 0;
}

bool is_slow(const Peer& peer, uint64_t bytes) {
  if (peer.on_this_host()) return false;
  const uint64_t rate = peer.transport->rate(peer.number);
  return rate != 0 && rate <= slow_link && bytes * 1'000'000 / rate >= least_wait_us;
}

}  // namespace headway::protocols
