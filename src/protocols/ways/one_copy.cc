#include "protocols/ways/one_copy.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/copy.h"
#include "protocols/messages/messages.h"
#include "protocols/ways/pieces.h"
#include "protocols/ways/rate.h"
#include "protocols/ways/stream.h"

namespace headway::protocols {
namespace {

constexpr uint64_t away_after_ns = 1000;     // a rank that waits no more for that long computes
constexpr uint64_t piece_bytes = 256 << 10;  // of a transfer that is not shared
constexpr uint64_t turn_bytes = 1 << 20;     // then another transfer has its turn
// Of a message in closed pages: somebody may be waiting for the first ones.
constexpr uint64_t first_piece = 16 << 10, released_piece = 64 << 10, first_ones = 64 << 10;
constexpr uint64_t share_from = 64 << 10;  // shorter rests are not worth the bookkeeping
constexpr size_t most_vectors = 64;
constexpr uint64_t on_its_way_ns = 5'000;
constexpr int most_looks = 8;  // at sends, for one to a given rank

bool is_push(const Request* request) { return request->kind == RequestKind::send; }

// The board of a transfer that `starter` began.
shm::Split split_of(const Request* starter) {
  const Peer& peer = *starter->peer;
  return is_push(starter) ? peer.out.pushed() : peer.in.pulled();
}

Stage copying_stage(const Request* request) {
  return is_push(request) ? Stage::pushing : Stage::pulling;
}

// Among the first ones.
bool has_any(const base::List<Request>& list, RequestKind kind, const Peer& peer) {
  int looks = 0;
  for (const Request* request = list.first(); request && looks < most_looks; ++looks) {
    if (request->kind == kind && request->peer == &peer) return true;
    request = request->list_next;
  }
  return false;
}

Request*& sharer(Request* starter) {
  return is_push(starter) ? starter->peer->direct.push_split : starter->peer->direct.pull_split;
}

}  // namespace

void OneCopy::add_frames(Frames& frames) {
  frames.add(uint8_t(Kind::pull), {.name = "pull",
                                   .owner = this,
                                   .whole = by<&OneCopy::deliver_pull>,
                                   .needs = transports::copies});
}

bool OneCopy::can_push(const Request* request) const {
  return messages_.transfer(*request).remote_address != 0 && may_pull_ &&
         request->peer->can(transports::copies) && request->memory.is_flat();
}

void OneCopy::begin_copy(Request* request, Stage stage, base::List<Request>& list) {
  messages_.set_stage(*request, stage);
  share(request);
  list.push_back(request);
}

void OneCopy::start_push(Request* send) {
  begin_copy(send, Stage::pushing, pushes_);
  ++messages_.counters().pushes;
}

void OneCopy::push_as_asked(Request* send) {
  rows_.of(*send).asked = true;
  start_push(send);
}

void OneCopy::expect_push(Request* receive) {
  rows_.of(*receive).asked = true;
  expect_help(receive);
}

void OneCopy::start_pull(Request* request) {
  Transfer& transfer = messages_.transfer(*request);
  Row& row = rows_.of(*request);
  row.away_since = 0;
  row.fresh = transfer.alone = false;
  transfer.head = transfer.tail = 0;
  begin_copy(request, Stage::pulling, pulls_);
  ++messages_.counters().pulls;
}

void OneCopy::begin_alone(Request* receive) {
  messages_.set_stage(*receive, Stage::pulling);
  Transfer& transfer = messages_.transfer(*receive);
  Row& row = rows_.of(*receive);
  row.fresh = transfer.alone = true;
  row.shared = row.drained = false;
  row.away_since = transfer.asked_at = transfer.asked = 0;
  transfer.partial = 0;
  pulls_.push_back(receive);
  ++messages_.counters().pulls;
}

void OneCopy::copy_edges(Request* receive) {
  const Transfer& transfer = messages_.transfer(*receive);
  while (receive->stage() == Stage::pulling && transfer.moved < edges_of(transfer)) {
    (void)copy_on(receive);
  }
}

// --- who copies ---

bool OneCopy::copy_some() {
  // A rank in a call that does not wait leaves the copy to its message thread, if it has one.
  const bool waits = messages_.handoff().driver == progress::Driver::waiting ||
                     messages_.handoff().driver == progress::Driver::thread;
  if (!waits && messages_.handoff().has_thread()) return false;
  bool moved = false;
  if (Request* request = pulls_.first()) {
    if (may_copy(request)) moved |= copy_on(request);
  }
  if (Request* request = pushes_.first()) {
    if (may_copy(request)) moved |= copy_on(request);
  }
  return moved;
}

// True if this side should copy now. The other side, if it is back, helps with a transfer that is
// shared; any other one becomes a stream.
bool OneCopy::may_copy(Request* request) {
  if (messages_.handoff().driver == progress::Driver::thread || request->is_redirected())
    return true;
  Row& row = rows_[*request];
  if (row.fresh) {
    row.fresh = false;  // first its user may be released
    return false;
  }
  if (!messages_.node().is_waiting(request->peer->number)) return stays_away(request);
  if (row.shared) return true;
  if (!is_push(request) && is_worth_pulling_on(request)) {
    // Its user does not go on: of what is closed, more must not have come.
    messages_.transfer(*request).alone = false;
    return true;
  }
  row.away_since = 0;
  if (is_push(request) && row.asked && has_any(pulls_, RequestKind::receive, *request->peer)) {
    hand_over(request);
  } else {
    stream_instead(request);
  }
  return false;
}

// Where both wait: its own core has nothing else to copy, or the other one has, or helps.
bool OneCopy::is_worth_pulling_on(Request* pull) {
  const Transfer& transfer = messages_.transfer(*pull);
  if (transfer.moved && transfer.total - transfer.moved < share_from) return true;
  if (each_copies_its_own(*pull)) return true;
  if (transfer.moved) share(pull);
  return rows_[*pull].shared;
}

// Two streams at a time, each core writing into one and reading from the other, are up to three
// times as fast if the string instruction writes them, where lines come quickly.
bool OneCopy::each_copies_its_own(const Request& receive) const {
  if (base::has_string_copy.load(std::memory_order_relaxed) && !receive.peer->out.is_slow())
    return false;
  if (messages_.transfer(receive).total < share_from) {
    return messages_.in_stage(Stage::requested) + messages_.in_stage(Stage::streaming) != 0;
  }
  const Peer& peer = *receive.peer;
  return !peer.backlog.streams.empty() || has_any(helpable_, RequestKind::send, peer) ||
         has_any(pushes_, RequestKind::send, peer);
}

// The receiver waits by now, and this side has those to copy that come from there: each its own.
void OneCopy::hand_over(Request* push) {
  const Transfer& transfer = messages_.transfer(*push);
  HEADWAY_CHECK(rows_[*push].asked && !rows_[*push].shared && transfer.moved < transfer.total);
  rows_[*push].asked = false;
  pushes_.remove(push);
  messages_.set_stage(*push, Stage::requested);
  FrameHeader header;
  header.kind = uint8_t(Kind::pull);
  header.word = transfer.remote;
  header.context = transfer.moved;
  messages_.links().control(*push->peer, header, nullptr);
  expect_help(push);
}

bool OneCopy::deliver_pull(Peer& peer, const FrameHeader& header, const char*) {
  Request* receive = landing(header.word, peer);
  const Row* row = receive ? rows_.find(*receive) : nullptr;
  if (!row || !row->asked || receive->is_redirected()) return false;
  Transfer& transfer = messages_.transfer(*receive);
  if (header.context >= transfer.total || transfer.moved) return false;
  stop_helping(receive);
  transfer.moved = header.context;
  messages_.note_arrival(receive, 0, header.context);
  start_pull(receive);
  return true;
}

bool OneCopy::stays_away(Request* request) {
  const uint64_t now = base::now_ns();
  Row& row = rows_.of(*request);
  if (row.away_since == 0) row.away_since = now;
  return now - row.away_since > away_after_ns;
}

void OneCopy::stream_instead(Request* request) {
  if (!is_push(request)) {
    pulls_.remove(request);
    messages_.clear_to_send(request, Way::stream);
    return;
  }
  rows_[*request].asked = false;
  pushes_.remove(request);
  messages_.set_stage(*request, Stage::streaming);
  request->peer->backlog.streams.push_back(request);
  ++messages_.counters().streams;
  messages_.links().mark_busy(*request->peer);
  streams_.stream_some(*request->peer);
}

void OneCopy::finish_push(Request* request) {
  FrameHeader header;
  header.kind = uint8_t(Kind::finished);
  header.flags = flag_to_receive;
  header.word = messages_.transfer(*request).remote;
  header.context = request->memory.bytes();
  messages_.links().control(*request->peer, header, nullptr, transports::Urgency::done);
  messages_.complete(request, Outcome::ok);
}

// --- pieces ---

// Copies the next piece from or to the other side's buffer, which lies still while its rank
// computes.
bool OneCopy::copy_on(Request* request) {
  HEADWAY_CHECK(request->stage() == copying_stage(request));
  Transfer& transfer = messages_.transfer(*request);
  const Row& row = rows_[*request];
  // Else the other rank would write to its pages.
  HEADWAY_CHECK(is_push(request) || !(request->is_redirected() && row.shared));
  shm::Piece piece;
  if (!next_piece(request, piece)) return false;
  const bool push = is_push(request);
  base::List<Request>& list = push ? pushes_ : pulls_;
  list.remove(request);
  if (piece.length) {
    uint64_t done = 0;
    HEADWAY_CHECK(piece.offset <= transfer.total && piece.length <= transfer.total - piece.offset);
    const Outcome outcome = copy(request, transfer.remote_address, piece, push, done);
    HEADWAY_CHECK(done <= piece.length);
    transfer.copied |= done > 0;
    if (row.shared) {
      transfer.moved = piece.offset + done;
    } else {
      note_moved(transfer, piece.offset, done);
    }
    if (!push) messages_.note_arrival(request, piece.offset, done);
    if (outcome != Outcome::ok) {
      if (transfer.order) {
        messages_.links().fail(outcome, *request->peer,
                               "the memory of a sender on this node can no longer be read");
        return true;
      }
      // Not allowed here: the rest goes through the segment.
      may_pull_ = false;
      unshare(request);
      list.push_front(request);
      stream_instead(request);
      return true;
    }
  } else {
    transfer.moved = transfer.total;
  }
  if (row.shared ? piece.length && !row.drained : transfer.moved < transfer.total) {
    // One message after the other, but a long one lets others pass now and then.
    if (transfer.moved % turn_bytes && !transfer.alone) {
      list.push_front(request);
    } else {
      list.push_back(request);
    }
    return true;
  }
  unshare(request);
  if (push) {
    finish_push(request);
    return true;
  }
  FrameHeader header;
  header.kind = uint8_t(Kind::finished);
  header.word = transfer.remote;
  messages_.links().control(*request->peer, header, nullptr, transports::Urgency::done);
  rate(*request->peer, transfer);
  messages_.note_received(transfer.total);
  messages_.complete(request, Outcome::ok);
  return true;
}

// False: all is taken, but the helper still copies. An empty piece: nothing is left to do.
bool OneCopy::next_piece(Request* request, shm::Piece& piece) {
  Row& row = rows_[*request];
  if (!row.shared) {
    const Transfer& transfer = messages_.transfer(*request);
    const auto [offset, rest] = stretch(transfer, transfer.moved);
    uint64_t most = piece_bytes;
    if (transfer.alone && !is_push(request)) {
      most = transfer.moved < edges_of(transfer) + first_ones ? first_piece : released_piece;
    }
    piece = {offset, rest < most ? rest : most};
    return true;
  }
  shm::Split split = split_of(request);
  if (!row.drained) {
    piece = split.take_front();
    if (piece.length) return true;
    row.drained = true;
  }
  return split.is_over(piece);
}

// One call of the system; `remote`: address of the other side's buffer.
Outcome OneCopy::copy(Request* request, uint64_t remote, const shm::Piece& piece, bool push,
                      uint64_t& done) {
  iovec vectors[most_vectors];
  uint64_t covered = 0;
  const size_t count =
      request->memory.vectors(piece.offset, piece.length, vectors, most_vectors, covered);
  const uint32_t local = request->peer->number;
  for (size_t i = 0; !push && i < count; ++i) {
    (void)messages_.make_writable(static_cast<const char*>(vectors[i].iov_base),
                                  vectors[i].iov_len);
  }
  if (push) return messages_.node().push(local, remote + piece.offset, vectors, count, done);
  const bool counts = request->is_redirected();
  const uint64_t began = counts ? base::now_ns() : 0;
  const Outcome outcome = messages_.node().pull(local, remote + piece.offset, vectors, count, done);
  if (counts) messages_.note_copying(base::now_ns() - began, done);
  return outcome;
}

// --- two ranks, one message ---

// From now on the other rank may help, if it comes to wait.
void OneCopy::share(Request* request) {
  Row& row = rows_.of(*request);
  row.shared = row.drained = false;
  const Transfer& transfer = messages_.transfer(*request);
  if (!request->memory.is_flat() || transfer.total - transfer.moved < share_from ||
      edges_of(transfer) || (!is_push(request) && each_copies_its_own(*request))) {
    return;  // what is shared out lies in one
  }
  Request*& owner = sharer(request);
  if (owner) return;
  if (!split_of(request).open(transfer.remote, transfer.moved, transfer.total,
                              reinterpret_cast<uint64_t>(request->memory.flat()))) {
    return;
  }
  owner = request;
  row.shared = true;
  // A rank that sleeps in MPI has time to help; one that computes is left alone.
  messages_.node().wake(request->peer->number, shm::event_done);
}

void OneCopy::unshare(Request* request) {
  Row* row = rows_.find(*request);
  if (!row || !row->shared) return;
  HEADWAY_CHECK(sharer(request) == request);
  split_of(request).close();
  sharer(request) = nullptr;
  row->shared = false;
}

void OneCopy::expect_help(Request* request) {
  if (!may_pull_ || !request->peer->can(transports::copies) || !request->memory.is_flat() ||
      request->memory.bytes() < share_from) {
    return;
  }
  Row& row = rows_.of(*request);
  if (row.helpable) return;
  left_alone_since_ = 0;
  row.helpable = true;
  helpable_.push_back(request);
}

void OneCopy::stop_helping(Request* request) {
  Row* row = rows_.find(*request);
  if (!row || !row->helpable) return;
  row->helpable = false;
  helpable_.remove(request);
}

void OneCopy::end_one_copy(Request* request) {
  stop_helping(request);
  unshare(request);
  Row& row = rows_[*request];
  if (!row.claimed) return;
  HEADWAY_CHECK(request->peer->direct.advertised == request);
  row.claimed = false;
  request->peer->in.advert().clear();
  request->peer->direct.advertised = nullptr;
}

// Whether the other side is outside MPI for a moment only, and perhaps about to send here what this
// side is to copy itself: with each in the midst of the other's message, one ends after the other.
bool OneCopy::is_on_its_way(const Peer& peer) {
  if (messages_.node().is_waiting(peer.number) || messages_.in_stage(Stage::posted) == 0) {
    left_alone_since_ = 0;
    return false;
  }
  const uint64_t now = base::now_ns();
  if (left_alone_since_ == 0) left_alone_since_ = now;
  return now - left_alone_since_ < on_its_way_ns;
}

bool OneCopy::help_some() {
  Request* request = helpable_.first();
  HEADWAY_CHECK(rows_[*request].helpable && request->stage() != Stage::idle);
  const Peer& peer = *request->peer;
  if (is_on_its_way(peer)) return false;
  const bool push = is_push(request);
  shm::Split split = push ? peer.out.pulled() : peer.in.pushed();
  uint64_t remote = 0, done = 0;
  const shm::Piece piece = split.take_back(id_of(request), request->memory.bytes(), remote);
  if (!piece.length) {
    if (helpable_.last() != request) {  // another one's turn
      helpable_.remove(request);
      helpable_.push_back(request);
    }
    return false;
  }
  if (copy(request, remote, piece, push, done) == Outcome::ok) {
    split.helper_copied(piece);
    ++messages_.counters().helped;
    return true;
  }
  may_pull_ = false;
  split.helper_refused();
  stop_helping(request);
  return true;
}

// --- adverts ---

void OneCopy::advertise(Request* receive) {
  Peer* peer = receive->peer;
  if (!peer || !peer->can(transports::copies) || peer->direct.advertised || !may_pull_ ||
      receive->key.is_wild() || !receive->memory.is_flat() || !peer->in.attached() ||
      messages_.would_take(receive->key, receive->traffic)) {
    return;
  }
  peer->direct.advertised = receive;
  const matching::Key& key = receive->key;
  peer->in.advert().publish(
      {key.context, key.source, key.tag, reinterpret_cast<uint64_t>(receive->memory.flat()),
       receive->memory.bytes(), id_of(receive)},
      peer->seen);
  expect_help(receive);
}

// False: its sender was faster.
bool OneCopy::is_withdrawn(Request* receive) {
  if (!receive->peer || receive->peer->direct.advertised != receive) return true;
  if (!receive->peer->in.advert().withdraw()) return false;
  receive->peer->direct.advertised = nullptr;
  stop_helping(receive);
  return true;
}

bool OneCopy::withdraw(Request* receive) {
  if (is_withdrawn(receive)) [[likely]]
    return true;
  land_claimed(receive);
  return false;
}

bool OneCopy::take_back(Request* receive) {
  if (is_withdrawn(receive)) return true;
  messages_.unpost(receive);
  land_claimed(receive);
  return false;
}

// A receive that its sender has claimed, and that is out of the queue.
void OneCopy::land_claimed(Request* receive) {
  HEADWAY_CHECK(receive->peer->direct.advertised == receive && !receive->queued);
  messages_.set_stage(*receive, Stage::landing);
  rows_.of(*receive).claimed = true;
  messages_.requests().transfers.begin(*receive).total = receive->memory.bytes();
}

Request* OneCopy::landing(uint32_t id, Peer& peer) {
  Request* receive = messages_.requests().by_wire_id(id);
  if (!receive || receive->kind != RequestKind::receive || receive->peer != &peer) return nullptr;
  if (receive->stage() == Stage::posted) (void)take_back(receive);
  return receive->stage() == Stage::landing ? receive : nullptr;
}

bool OneCopy::claim(Request* send) {
  Peer& peer = *send->peer;
  if (!peer.can(transports::copies) || !may_pull_ || !send->memory.is_flat() ||
      send->memory.bytes() <= shm::advertise_from || messages_.node().is_waiting(peer.number)) {
    return false;
  }
  const matching::Key& key = send->key;
  shm::Posted posted;
  if (!peer.out.advert().claim(key.context, key.source, key.tag, peer.sequence, posted)) {
    return false;
  }
  ++messages_.counters().claims;
  Transfer& transfer = messages_.requests().transfers.begin(*send);
  const uint64_t bytes = send->memory.bytes();
  transfer.total = bytes < posted.bytes ? bytes : posted.bytes;
  transfer.remote = posted.receive;
  transfer.remote_address = posted.address;
  transfer.copied = true;          // the end of it is to be told whichever way it goes
  rows_.of(*send).away_since = 1;  // long ago: nothing is to be waited for
  start_push(send);
  return true;
}

}  // namespace headway::protocols
