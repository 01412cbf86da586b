// Send side of the engine: eager frames, handshakes, streams, and copies into a peer's memory.
#include <new>

#include "base/check.h"
#include "base/heap.h"
#include "protocols/engine.h"

namespace headway::protocols {

using transports::Urgency;

namespace {

constexpr uint64_t packed_at_once = 32 << 10;  // by the transport, without a copy of its own
// A message to oneself up to this size is copied aside; a longer one waits in its buffer.
constexpr uint64_t self_copy_max = 64 << 10;

FrameHeader envelope_of(const Request& request, Kind kind) {
  FrameHeader header;
  header.kind = uint8_t(kind);
  header.collective = request.traffic.collective;
  header.shape = request.traffic.shape;
  header.tag = request.key.tag;
  header.source = request.key.source;
  header.context = request.key.context;
  return header;
}

}  // namespace

Push Engine::push_frame(Peer& peer, const FrameHeader& header, const void* head, uint32_t n,
                        const Feed* feed, uint64_t cookie, Urgency urgency) {
  HEADWAY_CHECK(peer.controls.empty() || &peer.controls.first()->header == &header);
  if (peer.out.attached()) return rings_.push(peer.number, header, head, n, feed, cookie, urgency);
  const Push pushed = peer.transport->push(peer.number, header, head, n, feed, cookie, urgency);
  if (pushed != Push::full) presends_.note_pushed(peer, header);
  return pushed;
}

void Engine::control(Peer& peer, const FrameHeader& header, const void* body, Urgency urgency) {
  HEADWAY_CHECK(header.length <= sizeof(ControlFrame::body));
  if (peer.left) [[unlikely]]
    return;
  if (!peer.connected) connect(peer);
  if (peer.controls.empty() &&
      push_frame(peer, header, body, header.length, nullptr, 0, urgency) != Push::full) {
    return;
  }
  void* memory = base::heap_allocate(sizeof(ControlFrame));
  if (!memory) {
    fail(Outcome::no_memory, peer, "no memory for a control frame");
    return;
  }
  auto* frame = new (memory) ControlFrame;
  frame->header = header;
  if (body) memcpy(frame->body, body, header.length);
  peer.controls.push_back(frame);
  mark_busy(peer);
}

bool Engine::send_now(Peer& peer, const FrameHeader& envelope, const UserMemory& memory) {
  const uint64_t bytes = memory.bytes();
  if (!ready(peer) || bytes > peer.eager_max) [[unlikely]]
    return false;
  FrameHeader header = envelope;
  header.kind = uint8_t(Kind::eager);
  header.length = uint32_t(bytes);
  header.sequence = peer.sequence;
  if (peer.out.attached()) [[likely]] {
    if (rings_.is_pressed(peer.number)) return false;
    if (bytes <= shm::inline_max && memory.is_flat()) [[likely]] {
      if (rings_.push_small(peer.number, peer.out, header, memory.flat()) == Push::full)
        return false;
      ++peer.sequence;
      ++counters.eager_sent;
      note_sent(bytes);
      return true;
    }
  } else if (!peer.transport || peer.pressed || (bytes > packed_at_once && !memory.is_flat())) {
    // To itself; or half of what is packed might have to wait, and nobody would hear of its end.
    return false;
  } else if (presends_.is_on() && peer.can(transports::early) && memory.is_flat() &&
             !presends_.note_sent_now(peer, header, memory.flat(), bytes)) {
    return false;
  }
  const Feed feed = memory.feed(0, bytes);
  if (push_frame(peer, header, nullptr, 0, &feed, 0, Urgency::envelope) != Push::done) {
    return false;
  }
  ++peer.sequence;
  ++counters.eager_sent;
  note_sent(bytes);
  return true;
}

bool Engine::wants_handshake(const Peer& peer, const Request* request) const {
  if (request->memory.bytes() > peer.eager_max) return true;
  return peer.out.attached()
             ? rings_.is_pressed(peer.number)
             : peer.pressed || (peer.on_this_host() && peer.transport->is_pressed(peer.number));
}

void Engine::start_send(Request* request) {
  begin(*request);
  request->cancelled = request->cancelling = false;
  if (reach.is_kept()) [[unlikely]]
    reach.note(*request);
  Peer& peer = *request->peer;
  note_sent(request->memory.bytes());
  if (presends_.is_on() && peer.can(transports::early)) presends_.note_send(request);
  if (!peer.transport) {
    start_send_to_self(request);
    return;
  }
  if (ready(peer)) {
    if (request->blocking && one_copy_.claim(request)) return;
    if (push_envelope(request) != Push::full) return;
  }
  set_stage(*request, Stage::held);
  peer.held.push_back(request);
  mark_busy(peer);
}

// Sends the envelope, with the message if it is small. Takes the request out of the held list.
Push Engine::push_envelope(Request* request) {
  Peer& peer = *request->peer;
  HEADWAY_CHECK(peer.controls.empty() && (peer.held.empty() || peer.held.first() == request));
  const bool synchronous = request->mode == Mode::synchronous;
  const bool whole = !synchronous && presends_.confirms_all(*request);
  const bool handshake =
      !whole && (wants_handshake(peer, request) || (synchronous && presends_.was_asked(*request)));
  const bool was_held = request->stage() == Stage::held;
  FrameHeader header = envelope_of(*request, handshake ? Kind::request_send : Kind::eager);
  header.sequence = peer.sequence;
  if (presends_.was_asked(*request)) header.flags = flag_asked;
  Push pushed;
  if (whole) {
    pushed = presends_.push_confirm(request, header);
  } else if (handshake) {
    const bool may_pull = request->memory.is_flat() && peer.can(transports::copies);
    RequestSend body{request->memory.bytes(),
                     may_pull ? reinterpret_cast<uint64_t>(request->memory.flat()) : 0,
                     0,
                     0,
                     presends_.origin_of(*request),
                     0};
    if (may_pull && !request->notify && !request->is_redirected() &&
        request->mode == Mode::standard && copies_.may_send_ahead()) {
      copies_.may_move(request, body);
    }
    if (request->blocking || handoff.driver == progress::Driver::waiting) {
      header.flags |= flag_waiting;
    }
    if (synchronous) header.flags |= flag_synchronous;
    char frame[sizeof body + sizeof(Confirmed) + most_confirmed_words * sizeof(uint64_t)];
    memcpy(frame, &body, sizeof body);
    header.word = id_of(request);
    header.length = uint32_t(sizeof body) + presends_.tell_confirmed(*request, frame + sizeof body);
    pushed = push_frame(peer, header, frame, header.length, nullptr, 0, Urgency::rendezvous);
    if (pushed == Push::full) {
      copies_.moves_no_more(request);
    } else {
      ++counters.handshakes;
      if (!peer.on_this_host()) presends_.note_announced(peer, *request);
    }
  } else {
    header.word = presends_.origin_of(*request);
    if (synchronous) {
      header.flags = flag_synchronous;
      header.word = id_of(request);
    }
    const uint64_t bytes = request->memory.bytes();
    header.length = uint32_t(bytes);
    if (peer.out.attached() && bytes <= shm::inline_max && request->memory.is_flat()) {
      pushed = rings_.push_small(peer.number, peer.out, header, request->memory.flat());
    } else {
      const Feed feed = request->memory.feed(0, bytes);
      pushed = push_frame(peer, header, nullptr, 0, &feed, cookie_of(*request), Urgency::envelope);
    }
    if (pushed != Push::full) ++counters.eager_sent;
  }
  if (pushed == Push::full) return pushed;
  ++peer.sequence;
  if (was_held) peer.held.remove(request);
  if (handshake) {
    set_stage(*request, Stage::requested);
    one_copy_.expect_help(request);
  } else if (pushed == Push::started) {
    set_stage(*request, Stage::leaving);
  } else {
    retire_send(request);
  }
  return pushed;
}

// The bytes of an eager message have left.
void Engine::retire_send(Request* request) {
  if (request->mode == Mode::synchronous) {
    set_stage(*request, Stage::requested);
    // A step of a schedule is followed by others.
    if (request->notify) return;
    request->set(Mark::passive);
    ++handoff.passive;
  } else {
    complete(request, Outcome::ok);
  }
}

void Engine::start_send_to_self(Request* request) {
  if (auto* receive = static_cast<Request*>(posted.match(request->key, request->traffic))) {
    describe(receive, request->key, request->memory.bytes(), *request->peer);
    UserMemory::copy(request->memory, receive->memory, receive->status_bytes());
    note_received(receive->status_bytes());
    complete(receive, Outcome::ok);
    complete(request, Outcome::ok);
    return;
  }
  const uint64_t bytes = request->memory.bytes();
  const bool copied = request->mode != Mode::synchronous && bytes <= self_copy_max;
  FrameHeader header = envelope_of(*request, Kind::eager);
  Arrived* message = unexpected_.make(*request->peer, header, bytes, copied);
  if (!message) {
    complete(request, Outcome::no_memory);
    return;
  }
  message->have = message->size;
  if (copied) {
    request->memory.read(0, message->data, bytes);
    complete(request, Outcome::ok);
  } else {
    message->own_send = request;
    set_stage(*request, Stage::requested);
  }
}

bool Engine::deliver_clear_send(Peer& peer, const FrameHeader& header, const char* body) {
  ClearSend clear;
  memcpy(&clear, body, sizeof clear);
  Request* request = requests_.by_wire_id(header.word);
  if (!request || request->kind != RequestKind::send || request->stage() != Stage::requested ||
      request->peer != &peer || clear.start > clear.length ||
      clear.length > request->memory.bytes() || uint64_t(clear.head) + clear.tail > clear.length ||
      !presends_.fits_confirmed(*request, clear)) {
    ++counters.garbage;
    return true;
  }
  one_copy_.stop_helping(request);
  request->cancelling = false;
  Transfer& transfer = requests_.transfers.begin(*request);
  transfer.remote = clear.receive;
  transfer.moved = clear.start;
  transfer.total = clear.length;
  transfer.head = clear.head;
  transfer.tail = clear.tail;
  transfer.remote_address = clear.address;
  transfer.withheld = header.flags & flag_yes;
  if (!presends_.leave_out_confirmed(request)) return true;
  if (clear.way == Way::push && one_copy_.can_push(request)) {
    one_copy_.start_push(request);
    return true;
  }
  set_stage(*request, Stage::streaming);
  ++counters.streams;
  // The edges overtake what is under way: without them the receiver cannot go on.
  if (edges_of(transfer)) {
    peer.streams.push_front(request);
  } else if (!transfer.withheld) {
    peer.streams.push_back(request);
  }
  if (peer.impatient && --peer.impatient == 0) peer.transport->hurry(peer.number, false);
  mark_busy(peer);
  streams_.stream_some(peer);
  return true;
}

}  // namespace headway::protocols
