#include "protocols/ways/stream.h"

#include "base/check.h"
#include "guard/guard.h"
#include "protocols/core.h"
#include "protocols/ways/one_copy.h"
#include "protocols/ways/order.h"
#include "protocols/ways/pieces.h"
#include "protocols/ways/rate.h"

namespace headway::protocols {
namespace {

constexpr uint64_t stream_turn = 1 << 20;
constexpr uint64_t copy_piece = 16 << 10;
// To a peer that asks for pages out of turn, which have to wait for a frame that has begun.
constexpr uint64_t impatient_chunk = 16 << 10;
static_assert(impatient_chunk >= Order::most_burst * guard::page_bytes);
}  // namespace

Streams::Streams(Core& core, OneCopy& one_copy)
    : core_(core),
      one_copy_(one_copy),
      spare_(core.handoff(), core.settings().spare, core.counters().spared) {}

void Streams::add_frames(Frames& frames) {
  constexpr uint32_t in_place = transports::in_place;
  frames.add(uint8_t(Kind::data), {.name = "data",
                                   .owner = this,
                                   .whole = by<&Streams::deliver_data>,
                                   .begin = by<&Streams::begin_data>,
                                   .most = any_length});
  frames.add(
      uint8_t(Kind::demand),
      {.name = "demand", .owner = this, .whole = by<&Streams::deliver_demand>, .needs = in_place});
  frames.add(
      uint8_t(Kind::grant),
      {.name = "grant", .owner = this, .whole = by<&Streams::deliver_grant>, .needs = in_place});
}

void Streams::begin_stream(Request* receive) {
  Transfer& transfer = core_.transfer(*receive);
  HEADWAY_CHECK(!transfer.withheld && !transfer.expected);
  transfer.expected = true;
  landings_.push_back(receive);
  spare_.note_landing(*receive->peer);
  transfer.turn = {.receive = receive};
  turns_[int(Need::met)].push_back(&transfer.turn);
}

void Streams::end_stream(Request* request) {
  Transfer& transfer = core_.transfer(*request);
  if (transfer.expected) {
    transfer.expected = false;
    landings_.remove(request);
    spare_.note_landed(*request->peer);
    turns_[int(transfer.turn.need)].remove(&transfer.turn);
    HEADWAY_CHECK(withheld_ >= transfer.withheld);
    withheld_ -= transfer.withheld;
    HEADWAY_CHECK(withheld_ <= landings_.size());
  }
  transfer.withheld = false;
  grant_next();
}

bool Streams::stream_some(Peer& peer) {
  bool moved = false;
  while (peer.backlog.controls.empty()) {
    Request* request = peer.backlog.streams.first();
    if (!request) break;
    Transfer& transfer = core_.transfer(*request);
    const uint64_t enough = spare_.enough_for(peer, transfer.moved);
    if (enough && spare_.has_enough(peer, enough)) break;
    if (takes_turns(*request) && !goes_now(request) && has_sent_edges(transfer)) {
      peer.backlog.streams.remove(request);
      queue_copy(request);
      continue;
    }
    const auto [offset, rest] = stretch(transfer, streamed(transfer));
    // Copies go in short pieces, so that one that was sent earlier can overtake.
    const uint64_t most = takes_turns(*request) ? copy_piece : peer.limits.chunk;
    uint64_t length = rest < most ? rest : most;
    if (peer.flow.impatient && length > impatient_chunk) length = impatient_chunk;
    if (enough && length > Spare::piece_of(enough)) length = Spare::piece_of(enough);
    // A message of few chunks goes in smaller ones: the receiver starts its copy sooner.
    if (peer.on_this_host() && transfer.total <= peer.limits.chunk &&
        length > peer.limits.chunk / 2) {
      length = peer.limits.chunk / 2;
    }
    if (one_copy_.can_push(request) && core_.node().is_waiting(peer.number)) {
      one_copy_.came_back(request);
    } else if (one_copy_.can_push(request) &&
               !peer.out.has_room(uint32_t(length), shm::reserved_cells)) {
      // The receiver has left and its ring is full: copy on without waking its thread.
      if (core_.handoff().driver == progress::Driver::waiting && !one_copy_.stays_away(request))
        break;
      peer.backlog.streams.remove(request);
      one_copy_.start_push(request);
      moved = true;
      continue;
    }
    FrameHeader header;
    header.kind = uint8_t(Kind::data);
    header.word = transfer.remote;
    header.context = offset;
    header.length = uint32_t(length);
    const Feed feed = request->memory.feed(offset, length);
    const Push pushed = core_.links().push_frame(peer, header, nullptr, 0, &feed,
                                                 cookie_of(*request), transports::Urgency::data);
    if (pushed == Push::full) break;
    moved = true;
    note_moved(transfer, offset, length);
    HEADWAY_CHECK(transfer.moved <= transfer.total);
    if (pushed == Push::started) ++transfer.in_flight;
    if (transfer.moved < transfer.total) {
      // One message after the other keeps caches warm; a long one lets others pass now and then,
      // and goes behind them when its edges have left.
      const bool edges_left = streamed(transfer) == edges_of(transfer);
      if (edges_left || transfer.moved % stream_turn == 0) {
        peer.backlog.streams.remove(request);
        if (!(edges_left && transfer.withheld)) peer.backlog.streams.push_back(request);
      }
      continue;
    }
    peer.backlog.streams.remove(request);
    spare_.note_left(peer);
    if (goes_now(request)) copy_is_gone(request);
    if (transfer.copied) {
      one_copy_.finish_push(request);  // the receiver could not count what was copied
    } else if (transfer.in_flight == 0) {
      core_.complete(request, Outcome::ok);
    }
  }
  return moved;
}

// --- what comes ---

bool Streams::deliver_data(Peer& peer, const FrameHeader& header, const char* body) {
  Request* receive = one_copy_.landing(header.word, peer);
  if (!receive) return false;
  Transfer& transfer = core_.transfer(*receive);
  if (header.context > transfer.total || header.length > transfer.total - header.context ||
      header.length > transfer.total - transfer.moved ||
      (peer.can(transports::in_place) && !may_come(transfer, header))) {
    return false;
  }
  receive->memory.write(header.context, body, header.length);
  transfer.moved += header.length;
  core_.note_arrival(receive, header.context, header.length);
  grant_next();
  if (transfer.moved == transfer.total && !one_copy_.is_claimed(*receive)) {
    rate(peer, transfer);
    core_.note_received(transfer.total);
    core_.complete(receive, Outcome::ok);
  }
  return true;
}

bool Streams::begin_data(Peer& peer, const FrameHeader& header, Landing& landing) {
  static constexpr Lander lander{.landed = by<&Streams::data_landed>,
                                 .end = by<&Streams::end_data>};
  Request* receive =
      core_.requests().by_wire_id(header.word, RequestKind::receive, peer, Stage::landing);
  if (!receive) return false;
  Transfer& transfer = core_.transfer(*receive);
  if (header.context > transfer.total || header.length > transfer.total - header.context ||
      !may_come(transfer, header)) {
    return false;
  }
  landing = receive->memory.landing(header.context, header.length);
  landing.token = receive;
  landing.lander = &lander;
  return true;
}

void Streams::data_landed(const FrameHeader& header, const Landing& landing, uint64_t arrived) {
  auto* receive = static_cast<Request*>(landing.token);
  Transfer& transfer = core_.transfer(*receive);
  const uint64_t before = transfer.partial;
  transfer.partial = arrived < landing.length ? arrived : landing.length;
  core_.note_arrival(receive, header.context + before, transfer.partial - before);
  grant_next();
}

void Streams::end_data(uint32_t, const FrameHeader& header, const Landing& landing) {
  auto* receive = static_cast<Request*>(landing.token);
  Transfer& transfer = core_.transfer(*receive);
  transfer.moved += header.length;
  transfer.partial = 0;
  HEADWAY_CHECK(transfer.moved <= transfer.total);
  if (transfer.moved < transfer.total) return;
  rate(*receive->peer, transfer);
  core_.note_received(transfer.total);
  core_.complete(receive, Outcome::ok);
}

}  // namespace headway::protocols
