#include "protocols/ways/stream.h"

#include "base/check.h"
#include "protocols/engine.h"
#include "protocols/ways/rate.h"

namespace headway::protocols {
namespace {

constexpr uint64_t stream_turn = 1 << 20;
constexpr uint64_t aside_piece = 16 << 10;
// To a peer that asks for pages out of turn, which have to wait for a frame that has begun.
constexpr uint64_t impatient_chunk = 16 << 10;
static_assert(impatient_chunk >= Order::most_burst * guard::page_bytes);
}  // namespace

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
  HEADWAY_CHECK(!receive->withheld);
  receive->expected = true;
  landings_.push_back(receive);
}

void Streams::end_stream(Request* request) {
  if (request->expected) {
    request->expected = false;
    landings_.remove(request);
    HEADWAY_CHECK(withheld_ >= request->withheld);
    withheld_ -= request->withheld;
    HEADWAY_CHECK(withheld_ <= landings_.size());
  }
  request->withheld = false;
  grant_next();
}

bool Streams::stream_some(Peer& peer) {
  bool moved = false;
  while (peer.controls.empty()) {
    Request* request = peer.streams.first();
    if (!request) break;
    if (takes_turns(*request) && request != aside_now_ && has_sent_edges(*request)) {
      peer.streams.remove(request);
      queue_aside(request);
      continue;
    }
    const auto [offset, rest] = stretch(*request, streamed(*request));
    // Copies go in short pieces, so that one that was sent earlier can overtake.
    const uint64_t most = takes_turns(*request) ? aside_piece : peer.chunk;
    uint64_t length = rest < most ? rest : most;
    if (peer.impatient && length > impatient_chunk) length = impatient_chunk;
    // A message of few chunks goes in smaller ones: the receiver starts its copy sooner.
    if (peer.on_this_host() && request->total <= peer.chunk && length > peer.chunk / 2) {
      length = peer.chunk / 2;
    }
    if (engine_.one_copy_.can_push(request) && engine_.node.is_waiting(peer.number)) {
      request->away_since = 0;
    } else if (engine_.one_copy_.can_push(request) &&
               !peer.out.has_room(uint32_t(length), shm::reserved_cells)) {
      // The receiver has left and its ring is full: copy on without waking its thread.
      if (engine_.handoff.driver == progress::Driver::waiting &&
          !engine_.one_copy_.stays_away(request))
        break;
      peer.streams.remove(request);
      engine_.one_copy_.start_push(request);
      moved = true;
      continue;
    }
    FrameHeader header;
    header.kind = uint8_t(Kind::data);
    header.word = request->remote;
    header.context = offset;
    header.length = uint32_t(length);
    const Feed feed = request->memory.feed(offset, length);
    const Push pushed = engine_.push_frame(peer, header, nullptr, 0, &feed, cookie_of(*request),
                                           transports::Urgency::data);
    if (pushed == Push::full) break;
    moved = true;
    note_moved(*request, offset, length);
    HEADWAY_CHECK(request->moved <= request->total);
    if (pushed == Push::started) ++request->in_flight;
    if (request->moved < request->total) {
      // One message after the other keeps caches warm; a long one lets others pass now and then,
      // and goes behind them when its edges have left.
      const bool edges_left = streamed(*request) == edges_of(*request);
      if (edges_left || request->moved % stream_turn == 0) {
        peer.streams.remove(request);
        if (!(edges_left && request->withheld)) peer.streams.push_back(request);
      }
      continue;
    }
    peer.streams.remove(request);
    if (request == aside_now_) next_aside();
    if (request->copied) {
      engine_.one_copy_.finish_push(request);  // the receiver could not count what was copied
    } else if (request->in_flight == 0) {
      engine_.complete(request, Outcome::ok);
    }
  }
  return moved;
}

// --- what comes ---

bool Streams::deliver_data(Peer& peer, const FrameHeader& header, const char* body) {
  Request* receive = engine_.one_copy_.landing(header.word, peer);
  if (!receive || header.context > receive->total ||
      header.length > receive->total - header.context ||
      header.length > receive->total - receive->moved ||
      (peer.can(transports::in_place) && !may_come(receive, header))) {
    return false;
  }
  receive->memory.write(header.context, body, header.length);
  receive->moved += header.length;
  engine_.note_arrival(receive, header.context, header.length);
  grant_next();
  if (receive->moved == receive->total && !receive->claimed) {
    rate(*receive);
    engine_.note_received(receive->total);
    engine_.complete(receive, Outcome::ok);
  }
  return true;
}

bool Streams::begin_data(Peer& peer, const FrameHeader& header, Landing& landing) {
  static constexpr Lander lander{.landed = by<&Streams::data_landed>,
                                 .end = by<&Streams::end_data>};
  Request* receive = engine_.by_wire_id(header.word);
  if (!receive || receive->kind != RequestKind::receive || receive->stage() != Stage::landing ||
      receive->peer != &peer || header.context > receive->total ||
      header.length > receive->total - header.context || !may_come(receive, header)) {
    return false;
  }
  landing = receive->memory.landing(header.context, header.length);
  landing.token = receive;
  landing.lander = &lander;
  return true;
}

void Streams::data_landed(const FrameHeader& header, const Landing& landing, uint64_t arrived) {
  auto* receive = static_cast<Request*>(landing.token);
  const uint64_t before = receive->partial;
  receive->partial = arrived < landing.length ? arrived : landing.length;
  engine_.note_arrival(receive, header.context + before, receive->partial - before);
  grant_next();
}

void Streams::end_data(uint32_t, const FrameHeader& header, const Landing& landing) {
  auto* receive = static_cast<Request*>(landing.token);
  receive->moved += header.length;
  receive->partial = 0;
  HEADWAY_CHECK(receive->moved <= receive->total);
  if (receive->moved < receive->total) return;
  rate(*receive);
  engine_.note_received(receive->total);
  engine_.complete(receive, Outcome::ok);
}

}  // namespace headway::protocols
