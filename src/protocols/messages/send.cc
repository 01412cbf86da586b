// Send side of the plain way: eager frames and handshakes.
#include "base/check.h"
#include "protocols/engine.h"
#include "protocols/ways/pieces.h"

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

// Made anew, member by member: a copy of what was written a moment ago in other pieces would wait
// until all of that has left the processor.
FrameHeader eager_of(const Peer& peer, const FrameHeader& envelope, uint64_t bytes) {
  FrameHeader header;
  header.kind = uint8_t(Kind::eager);
  header.flags = envelope.flags;
  header.collective = envelope.collective;
  header.shape = envelope.shape;
  header.length = uint32_t(bytes);
  header.tag = envelope.tag;
  header.source = envelope.source;
  header.context = envelope.context;
  header.sequence = peer.sequence;
  header.word = envelope.word;
  return header;
}

}  // namespace

bool Messages::send_now(Peer& peer, const FrameHeader& envelope, const UserMemory& memory) {
  const uint64_t bytes = memory.bytes();
  if (!links_.is_ready(peer) || bytes > peer.limits.eager) [[unlikely]]
    return false;
  if (peer.out.attached()) [[likely]] {
    if (links_.rings().is_pressed(peer.number)) return false;
    if (bytes <= shm::inline_max && memory.is_flat()) [[likely]] {
      if (links_.rings().push_small(peer.number, peer.out, peer.in, eager_of(peer, envelope, bytes),
                                    memory.flat()) == Push::full)
        return false;
      ++peer.sequence;
      ++counters_.eager_sent;
      note_sent(bytes);
      return true;
    }
  } else if (!peer.transport || peer.pressure.by_it ||
             (bytes > packed_at_once && !memory.is_flat())) {
    // To itself; or half of what is packed might have to wait, and nobody would hear of its end.
    return false;
  }
  FrameHeader header = eager_of(peer, envelope, bytes);
  if (!peer.out.attached() && engine().presends_.is_on() && peer.can(transports::early) &&
      memory.is_flat() && !engine().presends_.note_sent_now(peer, header, memory.flat(), bytes)) {
    return false;
  }
  const Feed feed = memory.feed(0, bytes);
  if (links_.push_frame(peer, header, nullptr, 0, &feed, 0, Urgency::envelope) != Push::done) {
    return false;
  }
  ++peer.sequence;
  ++counters_.eager_sent;
  note_sent(bytes);
  return true;
}

bool Messages::wants_handshake(const Peer& peer, const Request* request) {
  if (request->memory.bytes() > peer.limits.eager) return true;
  return peer.out.attached() ? links_.rings().is_pressed(peer.number)
                             : peer.pressure.by_it ||
                                   (peer.on_this_host() && peer.transport->is_pressed(peer.number));
}

void Messages::start_send(Request* request) {
  begin(*request);
  request->cancelled = request->cancelling = false;
  if (reach_.is_kept()) [[unlikely]]
    reach_.note(*request);
  Peer& peer = *request->peer;
  note_sent(request->memory.bytes());
  if (engine().presends_.is_on() && peer.can(transports::early))
    engine().presends_.note_send(request);
  if (!peer.transport) {
    start_send_to_self(request);
    return;
  }
  if (links_.is_ready(peer)) {
    if (request->blocking && engine().one_copy_.claim(request)) return;
    if (push_envelope(request) != Push::full) return;
  }
  set_stage(*request, Stage::held);
  peer.backlog.held.push_back(request);
  links_.mark_busy(peer);
}

// Sends the envelope, with the message if it is small. Takes the request out of the held list.
Push Messages::push_envelope(Request* request) {
  Peer& peer = *request->peer;
  HEADWAY_CHECK(peer.backlog.controls.empty() &&
                (peer.backlog.held.empty() || peer.backlog.held.first() == request));
  const bool synchronous = request->mode == Mode::synchronous;
  const bool whole = !synchronous && engine().presends_.confirms_all(*request);
  const bool handshake = !whole && (wants_handshake(peer, request) ||
                                    (synchronous && engine().presends_.was_asked(*request)));
  const bool was_held = request->stage() == Stage::held;
  FrameHeader header = envelope_of(*request, handshake ? Kind::request_send : Kind::eager);
  header.sequence = peer.sequence;
  if (engine().presends_.was_asked(*request)) header.flags = flag_asked;
  Push pushed;
  if (whole) {
    pushed = engine().presends_.push_confirm(request, header);
  } else if (handshake) {
    const bool may_pull = request->memory.is_flat() && peer.can(transports::copies);
    RequestSend body{request->memory.bytes(),
                     may_pull ? reinterpret_cast<uint64_t>(request->memory.flat()) : 0,
                     0,
                     0,
                     engine().presends_.origin_of(*request),
                     0};
    if (may_pull && !request->notify && !request->is_redirected() &&
        request->mode == Mode::standard && engine().copies_.may_send_ahead()) {
      engine().copies_.may_move(request, body);
    }
    if (request->blocking || handoff_.driver == progress::Driver::waiting) {
      header.flags |= flag_waiting;
    }
    if (synchronous) header.flags |= flag_synchronous;
    char frame[sizeof body + sizeof(Confirmed) + most_confirmed_words * sizeof(uint64_t)];
    memcpy(frame, &body, sizeof body);
    header.word = id_of(request);
    header.length =
        uint32_t(sizeof body) + engine().presends_.tell_confirmed(*request, frame + sizeof body);
    pushed = links_.push_frame(peer, header, frame, header.length, nullptr, 0, Urgency::rendezvous);
    if (pushed == Push::full) {
      engine().copies_.moves_no_more(request);
    } else {
      ++counters_.handshakes;
      if (!peer.on_this_host()) engine().presends_.note_announced(peer, *request);
    }
  } else {
    header.word = engine().presends_.origin_of(*request);
    if (synchronous) {
      header.flags = flag_synchronous;
      header.word = id_of(request);
    }
    const uint64_t bytes = request->memory.bytes();
    header.length = uint32_t(bytes);
    if (peer.out.attached() && bytes <= shm::inline_max && request->memory.is_flat()) {
      pushed =
          links_.rings().push_small(peer.number, peer.out, peer.in, header, request->memory.flat());
    } else {
      const Feed feed = request->memory.feed(0, bytes);
      pushed = links_.push_frame(peer, header, nullptr, 0, &feed, cookie_of(*request),
                                 Urgency::envelope);
    }
    if (pushed != Push::full) ++counters_.eager_sent;
  }
  if (pushed == Push::full) return pushed;
  ++peer.sequence;
  if (was_held) peer.backlog.held.remove(request);
  if (handshake) {
    set_stage(*request, Stage::requested);
    engine().one_copy_.expect_help(request);
  } else if (pushed == Push::started) {
    set_stage(*request, Stage::leaving);
  } else {
    retire_send(request);
  }
  return pushed;
}

// The bytes of an eager message have left.
void Messages::retire_send(Request* request) {
  if (request->mode == Mode::synchronous) {
    set_stage(*request, Stage::requested);
    // A step of a schedule is followed by others.
    if (request->notify) return;
    request->set(Mark::passive);
    ++handoff_.passive;
  } else {
    complete(request, Outcome::ok);
  }
}

void Messages::start_send_to_self(Request* request) {
  if (auto* receive = static_cast<Request*>(posted_.match(request->key, request->traffic))) {
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

bool Messages::deliver_clear_send(Peer& peer, const FrameHeader& header, const char* body) {
  ClearSend clear;
  memcpy(&clear, body, sizeof clear);
  Request* request = requests_.by_wire_id(header.word, RequestKind::send, peer, Stage::requested);
  if (!request || clear.start > clear.length || clear.length > request->memory.bytes() ||
      uint64_t(clear.head) + clear.tail > clear.length ||
      // What is withheld is all but the edges of a message of which nothing has come.
      ((header.flags & flag_yes) &&
       (clear.start || uint64_t(clear.head) + clear.tail == clear.length)) ||
      !engine().presends_.fits_confirmed(*request, clear)) {
    ++counters_.garbage;
    return true;
  }
  engine().one_copy_.stop_helping(request);
  request->cancelling = false;
  Transfer& transfer = requests_.transfers.of(*request);
  transfer = {};  // it may have one, of a push that was handed over
  transfer.remote = clear.receive;
  transfer.moved = clear.start;
  transfer.total = clear.length;
  transfer.head = clear.head;
  transfer.tail = clear.tail;
  transfer.remote_address = clear.address;
  transfer.withheld = header.flags & flag_yes;
  transfer.sharers = Streams::sharers_in(header);
  if (!engine().presends_.leave_out_confirmed(request)) return true;
  if (clear.way == Way::push && engine().one_copy_.can_push(request)) {
    engine().one_copy_.push_as_asked(request);
    return true;
  }
  set_stage(*request, Stage::streaming);
  ++counters_.streams;
  // The edges overtake what is under way: without them the receiver cannot go on.
  if (edges_of(transfer)) {
    peer.backlog.streams.push_front(request);
  } else if (!transfer.withheld) {
    peer.backlog.streams.push_back(request);
  }
  if (peer.flow.impatient && --peer.flow.impatient == 0) peer.transport->hurry(peer.number, false);
  links_.mark_busy(peer);
  engine().streams_.stream_some(peer);
  return true;
}

}  // namespace headway::protocols
