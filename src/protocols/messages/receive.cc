// Receive side of the plain way: what each frame means, and what a receive takes.
#include "base/check.h"
#include "base/clock.h"
#include "base/heap.h"
#include "protocols/engine.h"
#include "protocols/ways/pieces.h"
#include "protocols/ways/rate.h"
#include "settings/events.h"

namespace headway::protocols {

using settings::EventKind;

namespace {

constexpr uint64_t rated_from = 64 << 10;  // shorter messages tell little about the link
// Looks at a ring for a message that may come in one frame: longer than it takes between cores that
// are far, since a rank that made a request may come late to its next call, where its partner then
// waits. Not for a longer receive, which is soon told to its sender, nor where a peer may need the
// core.
constexpr int hotter_looks = 1024;
constexpr uint32_t most_in_a_row = 16;  // receives that look at nothing else

bool read_request(const FrameHeader& header, const char* body, RequestSend& request, Told& told,
                  uint64_t* bits) {
  memcpy(&request, body, sizeof request);
  const size_t rest = header.length - sizeof request;
  told.origin = request.origin;
  told.asked = header.flags & flag_asked;
  told.size = request.size;
  if (rest == 0) return true;
  Confirmed& confirmed = told.confirmed;
  if (rest <= sizeof confirmed) return false;
  const size_t words = rest - sizeof confirmed;
  if (words % sizeof *bits || words > most_confirmed_words * sizeof *bits) return false;
  memcpy(&confirmed, body + sizeof request, sizeof confirmed);
  memcpy(bits, body + sizeof request + sizeof confirmed, words);
  told.bits = bits;
  told.words = words / sizeof *bits;
  return confirmed.grain != 0;
}

constexpr uint32_t longest_request =
    sizeof(RequestSend) + sizeof(Confirmed) + most_confirmed_words * sizeof(uint64_t);

}  // namespace

// --- the queues ---

bool Messages::prepare_queues(uint32_t processes) {
  const matching::Config matcher{.design = matching::Design(settings_.matcher),
                                 .processes = processes,
                                 .collective_cap = uint32_t(settings_.matcher_kc),
                                 .partner_cap = uint32_t(settings_.matcher_kp),
                                 .threshold = uint32_t(settings_.matcher_threshold),
                                 .promises = &promises_};
  return posted_.prepare(matcher) && unexpected_.prepare(matcher);
}

void Messages::forget(uint64_t context) {
  promises_.forget(context);
  for (const uint64_t gone : {context, context + 1}) {
    posted_.forget(gone);
    unexpected_.forget(gone);
  }
}

// --- frames ---

// Each kind of wire.h: its row.
void Messages::add_frames() {
  const auto add = [&](Kind kind, FrameKind what) {
    what.owner = this;
    frames_.add(uint8_t(kind), what);
  };
  add(Kind::eager, {.name = "eager",
                    .whole = by<&Messages::deliver_eager>,
                    .begin = by<&Messages::begin_eager>,
                    .most = any_length,
                    .envelope = true});
  add(Kind::request_send, {.name = "request_send",
                           .whole = by<&Messages::deliver_request_send>,
                           .least = sizeof(RequestSend),
                           .most = longest_request,
                           .envelope = true});
  add(Kind::clear_send, {.name = "clear_send",
                         .whole = by<&Messages::deliver_clear_send>,
                         .least = sizeof(ClearSend),
                         .most = sizeof(ClearSend)});
  add(Kind::finished, {.name = "finished", .whole = by<&Messages::deliver_finished>});
  add(Kind::acknowledge, {.name = "acknowledge", .whole = by<&Messages::deliver_acknowledge>});
  add(Kind::cancel, {.name = "cancel", .whole = by<&Messages::deliver_cancel>});
  add(Kind::cancel_answer,
      {.name = "cancel_answer", .whole = by<&Messages::deliver_cancel_answer>});
  add(Kind::pressure, {.name = "pressure", .whole = by<&Messages::deliver_pressure>});
}

// Messages do not pay for the table.
bool Messages::deliver(Peer& peer, const FrameHeader& header, const char* body) {
  if (Kind(header.kind) == Kind::data) return engine().streams_.deliver_data(peer, header, body);
  if (Kind(header.kind) == Kind::eager) [[likely]] {
    const bool sense = deliver_eager(peer, header, body);
    note_seen(peer, header);
    return sense;
  }
  const FrameKind* kind = frames_.find(header, peer.caps);
  if (!kind || (kind->envelope && key_of(header).is_wild())) return false;
  const bool sense = kind->whole(kind->owner, peer, header, body);
  if (kind->envelope) note_seen(peer, header);
  return sense;
}

void Messages::note_seen(Peer& peer, const FrameHeader& header) {
  peer.seen = header.sequence + 1;
  if (peer.direct.advertised) peer.in.advert().saw(peer.seen);
}

namespace {

// Stands within deliver_eager(), where a call would cost a tenth of it.
[[gnu::always_inline]] inline Request* take_receive(matching::PostedQueue& posted,
                                                    OneCopy& one_copy, const FrameHeader& header) {
  while (auto* receive = static_cast<Request*>(posted.match(key_of(header), traffic_of(header)))) {
    if (one_copy.withdraw(receive)) [[likely]]
      return receive;
  }
  return nullptr;
}

}  // namespace

// The receive that takes a message. Those that their senders have claimed are taken already.
Request* Messages::match(const FrameHeader& header) {
  return take_receive(posted_, engine().one_copy_, header);
}

bool Messages::deliver_eager(Peer& peer, const FrameHeader& header, const char* body) {
  if (key_of(header).is_wild() || !engine().fetches_.note_eager(peer, header)) return false;
  if (Request* receive = take_receive(posted_, engine().one_copy_, header)) [[likely]] {
    describe(receive, key_of(header), header.length, peer);
    engine().fetches_.note_origin(receive, origin_told(header), nullptr);
    receive->memory.write(0, body, receive->status_bytes());
    note_arrival(receive, 0, receive->status_bytes());
    note_received(receive->status_bytes());
    if (header.flags & flag_synchronous) [[unlikely]] {
      acknowledge(peer, header.word);
    }
    complete(receive, Outcome::ok);
    return true;
  }
  Arrived* message = unexpected_.make(peer, header, header.length, true);
  if (!message) return true;
  memcpy(message->data, body, header.length);
  message->have = header.length;
  return true;
}

bool Messages::deliver_request_send(Peer& peer, const FrameHeader& header, const char* body) {
  RequestSend request;
  Told told;
  uint64_t bits[most_confirmed_words];
  Store* store;
  if (!read_request(header, body, request, told, bits) ||
      !engine().fetches_.note_envelope(peer, told, store)) {
    return false;
  }
  if (Request* receive = match(header)) {
    describe(receive, key_of(header), request.size, peer);
    engine().fetches_.note_origin(receive, request.origin, store);
    answer_request(receive, peer, request, header.word, header.flags & flag_waiting, store);
    return true;
  }
  Arrived* message = unexpected_.make(peer, header, request.size, false);
  if (!message) return true;
  message->handshake = true;
  message->remote = header.word;
  message->asked = request;
  message->store = store;
  engine().fetches_.fetch(message);
  return true;
}

bool Messages::deliver_finished(Peer& peer, const FrameHeader& header, const char*) {
  Request* request;
  if (header.flags & flag_to_receive) {
    request = engine().one_copy_.landing(header.word, peer);
    if (!request) return false;
    Transfer& transfer = this->transfer(*request);
    if (engine().one_copy_.is_claimed(*request)) {
      describe(request, request->key, header.context, peer);
      transfer.total = request->status_bytes();
    }
    rate(peer, transfer);
    note_received(transfer.total);
  } else {
    request = requests_.by_wire_id(header.word, RequestKind::send, peer, Stage::requested);
    if (!request) return false;
  }
  complete(request, Outcome::ok);
  return true;
}

// The receiver of a synchronous send has matched it. That can be heard before the transport tells
// that the bytes have left: then that is all that is still to come, as of a stream's last piece.
bool Messages::deliver_acknowledge(Peer& peer, const FrameHeader& header, const char*) {
  Request* send = requests_.by_wire_id(header.word);
  if (!send || send->kind != RequestKind::send || send->peer != &peer) return true;
  if (send->stage() == Stage::requested) {
    complete(send, Outcome::ok);
  } else if (send->stage() == Stage::leaving && send->mode == Mode::synchronous) {
    Transfer& transfer = requests_.transfers.begin(*send);
    transfer.total = transfer.moved = send->memory.bytes();
    transfer.in_flight = 1;
    set_stage(*send, Stage::streaming);
  }
  return true;
}

bool Messages::deliver_pressure(Peer& peer, const FrameHeader& header, const char*) {
  peer.pressure.by_it = header.flags & flag_yes;
  return true;
}

// --- frames whose body is still coming (TCP) ---

bool Messages::begin_eager(Peer& peer, const FrameHeader& header, Landing& landing) {
  static constexpr Lander to_receive{.landed = by<&Messages::eager_landed>,
                                     .end = by<&Messages::end_eager>};
  static constexpr Lander to_unexpected{.landed = nullptr, .end = by<&Messages::end_unexpected>};
  if (!engine().fetches_.note_eager(peer, header)) return false;
  if (Request* receive = match(header)) {
    describe(receive, key_of(header), header.length, peer);
    engine().fetches_.note_origin(receive, origin_told(header), nullptr);
    set_stage(*receive, Stage::landing);
    requests_.transfers.begin(*receive).total = receive->status_bytes();
    landing = receive->memory.landing(0, receive->status_bytes());
    landing.token = receive;
    landing.lander = &to_receive;
    return true;
  }
  Arrived* message = unexpected_.make(peer, header, header.length, true);
  if (!message) return false;
  landing = {
      .flat = message->data, .length = header.length, .token = message, .lander = &to_unexpected};
  return true;
}

void Messages::acknowledge(Peer& peer, uint32_t send) {
  FrameHeader answer;
  answer.kind = uint8_t(Kind::acknowledge);
  answer.word = send;
  links_.control(peer, answer, nullptr);
}

void Messages::eager_landed(const FrameHeader&, const Landing& landing, uint64_t arrived) {
  auto* receive = static_cast<Request*>(landing.token);
  // Of an eager message that is too long, the rest is thrown away.
  Transfer& transfer = this->transfer(*receive);
  const uint64_t before = transfer.partial;
  transfer.partial = arrived < landing.length ? arrived : landing.length;
  note_arrival(receive, before, transfer.partial - before);
  engine().streams_.grant_next();
}

void Messages::end_eager(uint32_t from, const FrameHeader& header, const Landing& landing) {
  auto* receive = static_cast<Request*>(landing.token);
  if (header.flags & flag_synchronous) {
    acknowledge(links_.peers()[from], header.word);
  }
  note_received(receive->status_bytes());
  complete(receive, Outcome::ok);
}

void Messages::end_unexpected(uint32_t, const FrameHeader&, const Landing& landing) {
  auto* message = static_cast<Arrived*>(landing.token);
  message->have = message->size;
  if (Request* receive = message->claimed) finish_eager(receive, message);
}

// --- receives ---

void Messages::describe(Request* receive, const matching::Key& key, uint64_t size, Peer& peer) {
  settings::tell<EventKind::message_matched>(key.source, key.tag, size);
  fill_in(receive, key, size, peer);
}

void Messages::fill_in(Request* receive, const matching::Key& key, uint64_t size, Peer& peer) {
  const uint64_t room = receive->memory.bytes();
  receive->peer = &peer;
  receive->status_source = key.source;
  receive->status_tag = key.tag;
  receive->sent_bytes = size;
  if (size > room) receive->outcome = Outcome::truncated;
  if (receive->is_redirected()) [[unlikely]]
    engine().release_.note_match(receive);
}

void Messages::begin_receive(Request* request) {
  begin(*request);
  request->cancelled = request->cancelling = false;
  request->serial = ++receives_begun_;
  if (reach_.is_kept()) [[unlikely]]
    reach_.note(*request);
}

void Messages::start_receive(Request* request) {
  begin_receive(request);
  if (auto* message = unexpected_.find(request->key, request->traffic)) [[unlikely]] {
    unexpected_.remove(message);
    accept(request, message);
    return;
  }
  if (request->memory.bytes() > shm::advertise_from) engine().one_copy_.advertise(request);
  set_stage(*request, Stage::posted);
  posted_.post(request);
  settings::tell<EventKind::receive_posted>(request->key.source, request->key.tag,
                                            request->memory.bytes());
  // Its user waits already, or nobody does by himself: it is a step.
  if (request->awaited || request->notify) engine().fetches_.note_wait(request);
}

bool Messages::take_back(Request* posted) { return engine().one_copy_.take_back(posted); }

// Only where nothing else waits for progress or can have an older claim: nothing is under way but
// receives that do not take it, nothing has come unexpected, and the next frame of the sender is
// that message.
bool Messages::receive_now(Peer& peer, const matching::Key& key, const UserMemory& memory,
                           uint64_t& bytes, bool once, matching::Traffic traffic) {
  if (!peer.in.attached() || key.is_wild() || unexpected_.count() != 0) return false;
  int looks = memory.bytes() <= shm::advertise_from && !is_crowded() ? hotter_looks : hot_looks;
  if (const int64_t others = handoff_.pending - listening_; others != 0) {
    // Only beside receives that wait for something else; and now and then it is their turn.
    if (others != int64_t(in_stage(Stage::posted)) || posted_.takes(key, traffic) ||
        ++in_a_row_ % most_in_a_row == 0) {
      return false;
    }
    looks = hotter_looks;  // the ordinary way has to tell peers twice who is inside
  }
  if (once) looks = 0;
  const shm::Cell* cell = peer.in.peek();
  for (int look = 0; !cell && look < looks; ++look) {
    if (look % hot_looks == hot_looks - 1 && handoff_.is_wanted()) break;
    cell = peer.in.peek();
  }
  if (!cell) return false;
  const FrameHeader& header = cell->header;
  if (Kind(header.kind) != Kind::eager || (header.flags & flag_synchronous) ||
      key_of(header) != key || header.length > memory.bytes()) {
    return false;
  }
  const char* body = peer.in.body(*cell);
  if (!body) return false;
  bytes = header.length;
  if (bytes) memory.write(0, body, bytes);
  settings::tell<EventKind::message_matched>(key.source, key.tag, bytes);
  note_received(bytes);
  note_seen(peer, header);
  links_.rings().drop(peer.number, peer.in, *cell);
  return true;
}

bool Messages::receive_arrived(const matching::Key& key, const UserMemory& memory, uint64_t& bytes,
                               int& source, int& tag) {
  if (unexpected_.count() == 0 || unexpected_.presses()) return false;  // its end is told to others
  Arrived* message = unexpected_.find(key, {});
  if (!message || message->own_send || message->handshake || message->synchronous ||
      message->store || message->remote || message->have != message->size ||
      message->size > memory.bytes()) {
    return false;
  }
  unexpected_.remove(message);
  bytes = message->size;
  source = message->key.source;
  tag = message->key.tag;
  if (bytes) memory.write(0, message->data, bytes);
  settings::tell<EventKind::message_matched>(source, tag, bytes);
  note_received(bytes);
  unexpected_.give(message);
  return true;
}

void Messages::start_matched_receive(Request* request, Arrived* message) {
  begin_receive(request);
  accept(request, message);
}

// Gives an unexpected message, already out of the queue, to a receive.
void Messages::accept(Request* receive, Arrived* message) {
  describe(receive, message->key, message->size, *message->peer);
  if (Request* send = message->own_send) {
    UserMemory::copy(send->memory, receive->memory, receive->status_bytes());
    note_received(receive->status_bytes());
    unexpected_.give(message);
    complete(receive, Outcome::ok);
    complete(send, Outcome::ok);
  } else if (message->handshake) {
    HEADWAY_CHECK(!message->data && message->have == 0);
    Peer& peer = *message->peer;
    const RequestSend asked = message->asked;
    const uint32_t send = message->remote;
    Store* store = message->store;
    message->store = nullptr;
    unexpected_.give(message);
    engine().fetches_.note_origin(receive, asked.origin, store, true);
    answer_request(receive, peer, asked, send, false, store);
  } else if (Store* store = message->store) {
    engine().fetches_.note_origin(receive, message->remote, store);
    message->store = nullptr;
    unexpected_.give(message);
    engine().fetches_.land_store(receive, store);
  } else if (message->have == message->size) {
    finish_eager(receive, message);
  } else {
    message->claimed = receive;
    set_stage(*receive, Stage::claimed);
  }
}

void Messages::finish_eager(Request* receive, Arrived* message) {
  HEADWAY_CHECK(message->have == message->size && message->data && !message->handshake);
  if (receive->status_bytes()) receive->memory.write(0, message->data, receive->status_bytes());
  if (!message->fetched) note_received(receive->status_bytes());
  engine().fetches_.note_origin(receive, message->synchronous ? 0 : message->remote, nullptr,
                                message->fetched != nullptr);
  if (message->synchronous) {
    acknowledge(*message->peer, message->remote);
  }
  unexpected_.give(message);
  complete(receive, Outcome::ok);
}

// Chooses how a message that was announced comes over: by whoever has time to copy. Two ranks that
// wait stream through the segment, or, where streams are slow, each copies its own message; one
// that waits alone copies alone; if neither waits, this side's message thread copies a little
// later. The choice is looked at again while the message moves.
void Messages::answer_request(Request* receive, Peer& peer, const RequestSend& asked, uint32_t send,
                              bool sender_waits, Store* store) {
  Transfer& transfer = requests_.transfers.of(*receive);
  transfer.total = receive->status_bytes();
  transfer.remote = send;
  transfer.remote_address = asked.address;
  if (asked.generation && peer.can(transports::copies)) {
    transfer.remote_address = peer.in.movers().take(asked.slot, asked.generation, asked.address);
  }
  const bool all_came = store && engine().fetches_.holds_all(*store, transfer.total);
  if (transfer.total == 0 || all_came) {
    FrameHeader header;
    header.kind = uint8_t(Kind::finished);
    header.word = send;
    links_.control(peer, header, nullptr, transports::Urgency::done);
    if (all_came) {
      engine().fetches_.land_store(receive, store);
      return;
    }
    note_received(0);
    complete(receive, Outcome::ok);
    return;
  }
  Way way = Way::stream;
  if (peer.can(transports::copies) && engine().one_copy_.may_pull() && asked.address != 0) {
    const bool receiver_waits = handoff_.driver == progress::Driver::waiting;
    if (receive->is_redirected() || (receiver_waits && receive->memory.is_flat() &&
                                     engine().release_.is_long_enough(*receive) &&
                                     engine().release_.is_profitable(receive, transfer.total)))
        [[unlikely]] {
      engine().one_copy_.begin_alone(receive);
      engine().release_.find_edges(receive, Way::stream);
      note_progress(receive);  // without edges it is ready
      engine().one_copy_.copy_edges(receive);
      return;
    }
    if (receiver_waits && transfer.total >= rated_from) transfer.asked_at = base::now_ns();
    sender_waits = sender_waits || node().is_waiting(peer.number);
    const bool own_each = receiver_waits && engine().one_copy_.each_copies_its_own(*receive);
    if (!sender_waits || own_each || !(receiver_waits || receive->memory.is_flat())) {
      engine().one_copy_.start_pull(receive);
      return;
    }
    if (!receiver_waits) way = Way::push;
  }
  clear_to_send(receive, way, store);
}

void Messages::clear_to_send(Request* receive, Way way, Store* store) {
  set_stage(*receive, Stage::landing);
  Transfer& transfer = this->transfer(*receive);
  transfer.partial = transfer.begun = transfer.asked = 0;
  if (receive->peer->can(transports::in_place)) {
    transfer.asked_at = transfer.total >= rated_from ? base::now_ns() : 0;
    engine().streams_.begin_stream(receive);
  }
  const uint64_t start = transfer.moved;
  engine().release_.find_edges(receive, way, store != nullptr);
  if (store) {
    if (!edges_of(transfer)) {
      const bool opens = receive->is_redirected() || engine().release_.is_long_enough(*receive);
      engine().fetches_.choose_pages(receive, store->grid, opens);
    }
    engine().fetches_.land_some(receive, store);
    transfer.asked_at = 0;
  }
  ClearSend body{start, transfer.total, 0, id_of(receive), way, transfer.head, transfer.tail};
  // Closed pages open as their bytes come: so these must all come in frames_.
  if (receive->peer->can(transports::copies) && receive->memory.is_flat() &&
      !receive->is_redirected()) {
    body.address = reinterpret_cast<uint64_t>(receive->memory.flat());
  }
  FrameHeader header;
  header.kind = uint8_t(Kind::clear_send);
  const bool may_wait = transfer.expected && engine().release_.is_long_enough(*receive);
  header.flags = may_wait && engine().streams_.withhold(receive) ? flag_yes : 0;
  header.word = transfer.remote;
  header.source = engine().streams_.sharers_of(*receive);
  header.length = sizeof body;
  links_.control(*receive->peer, header, &body);
  if (way == Way::push) engine().one_copy_.expect_push(receive);
  note_progress(receive);  // without edges it is ready
}

}  // namespace headway::protocols
