// Demand: a page that somebody waits for goes first. The receiver asks for it, the sender goes on
// from there. Pages that share other data are the message's edges, which come first in any case: so
// all that is asked for are whole pages between them.
#include "guard/guard.h"
#include "protocols/core.h"
#include "protocols/ways/one_copy.h"
#include "protocols/ways/order.h"
#include "protocols/ways/pieces.h"
#include "protocols/ways/rate.h"
#include "protocols/ways/stream.h"

namespace headway::protocols {
namespace {

using guard::page_bytes;

// Pages: a program that waits for one so little before the last one reads backwards.
constexpr uint64_t close_before = 64;
// What comes by itself before it could come at a request: the network holds as much, and a chunk.
constexpr uint64_t soon_us = 2000, least_soon = 16;
constexpr uint32_t impatient_streams = 8;  // after one that pages were asked of

}  // namespace

void Streams::ask_for_awaited(const char* page) {
  if (!page) return;
  const auto is_of = [&](const base::List<Request>& list) {
    for (Request* receive = list.first(); receive; receive = receive->list_next) {
      if (receive->is_redirected() && ask_for(receive, page)) return true;
    }
    return false;
  };
  (void)(is_of(landings_) || is_of(one_copy_.pulls()));
}

// False: it is none of its pages. Nothing is asked for that comes soon by itself, or has been.
bool Streams::ask_for(Request* receive, const char* page) {
  if (!receive->memory.is_flat()) return false;  // nothing is known of its pages
  const auto offset =
      int64_t(reinterpret_cast<uintptr_t>(page) - reinterpret_cast<uintptr_t>(receive->home));
  Transfer& transfer = core_.transfer(*receive);
  const uint64_t edges = edges_of(transfer);
  const uint64_t pages = (transfer.total - edges) / page_bytes;
  if (offset < int64_t(transfer.head) || offset >= int64_t(transfer.total - transfer.tail)) {
    return false;
  }
  const uint64_t number = (uint64_t(offset) - transfer.head) / page_bytes;
  if (transfer.head + number * page_bytes != uint64_t(offset)) return false;
  if (transfer.withheld) grant(receive);
  if (transfer.asked == number + 1) return true;
  const bool pulled = receive->stage() == Stage::pulling;
  const uint64_t begun = pulled ? transfer.moved : transfer.begun;
  const uint64_t in_time = arrival_rate(*receive->peer) / page_bytes * soon_us / 1'000'000;
  const uint64_t soon = pulled || in_time < least_soon ? least_soon : in_time;
  if (transfer.order) {
    if (transfer.order->comes_soon(number, soon)) return true;
  } else {
    const uint64_t next = begun > edges ? (begun - edges) / page_bytes : 0;
    if (number < next + soon || !begin_order(transfer, begun)) return true;
  }
  const uint64_t before = transfer.asked;
  transfer.asked = number + 1;
  const bool backwards =
      number + 1 == pages || (before > number && before - number <= close_before);
  transfer.order->ask(number, backwards);
  ++core_.counters().demands;
  if (pulled) {
    one_copy_.hurry(receive);
    return true;
  }
  FrameHeader header;
  header.kind = uint8_t(Kind::demand);
  header.flags = backwards ? flag_yes : 0;
  header.word = transfer.remote;
  header.context = transfer.head + number * page_bytes;
  core_.links().control(*receive->peer, header, nullptr);
  return true;
}

bool Streams::may_come(Transfer& transfer, const FrameHeader& header) {
  if (!transfer.expected) return false;
  if (transfer.order && transfer.begun >= edges_of(transfer)) {
    const uint64_t from = header.context - transfer.head;
    if (header.context < transfer.head || from % page_bytes || header.length % page_bytes ||
        !transfer.order->take(from / page_bytes, header.length / page_bytes)) {
      return false;
    }
  } else {
    const auto [offset, rest] = stretch(transfer, transfer.begun);
    if (header.context != offset || header.length > rest || header.length == 0) return false;
  }
  transfer.begun_at = header.context;
  transfer.begun += header.length;
  return true;
}

// What is asked for too late, or has gone, is on its way. But a page that the message does not have
// is nothing that an engine asks for.
bool Streams::deliver_demand(Peer& peer, const FrameHeader& header, const char*) {
  Request* send =
      core_.requests().by_wire_id(header.word, RequestKind::send, peer, Stage::streaming);
  if (!send) return true;
  Transfer& transfer = core_.transfer(*send);
  if (transfer.moved == transfer.total) return true;
  const uint64_t between = transfer.total - edges_of(transfer);
  const uint64_t at = header.context - transfer.head;
  if (header.context < transfer.head || at >= between || at % page_bytes || between % page_bytes) {
    return false;
  }
  if (transfer.withheld) return true;
  if (!transfer.order && !begin_order(transfer, transfer.moved)) return true;
  peer.flow.impatient = impatient_streams;
  peer.transport->hurry(peer.number, true);
  if (transfer.order->is_taken(at / page_bytes)) return true;
  transfer.order->ask(at / page_bytes, header.flags & flag_yes);
  if (!takes_turns(*send)) {  // else it may stand in the line of copies
    peer.backlog.streams.remove(send);
    peer.backlog.streams.push_front(send);
  }
  ++core_.counters().heeded;
  return true;
}

}  // namespace headway::protocols
