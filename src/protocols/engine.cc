#include "protocols/engine.h"

#include "base/check.h"
#include "base/copy.h"
#include "protocols/ways/pieces.h"

namespace headway::protocols {

namespace {

constexpr uint32_t reap_every = 16;     // rounds of a waiting rank between two looks at descriptors
constexpr uint32_t copy_after_us = 20;  // then the message thread makes the copy

}  // namespace

Outcome Engine::prepare(const settings::Settings& settings, uint32_t rank, uint32_t size,
                        FatalHandler fatal, uint32_t job) {
  settings_ = settings;
  rank_ = rank;
  base::find_string_copy();
  links_.prepare(fatal);
  one_copy_.allow(settings.one_copy != 0);
  copies_.prepare(settings.send_ahead);
  streams_.prepare(settings.release_batch);
  add_frames();
  streams_.add_frames(frames_);
  one_copy_.add_frames(frames_);
  fetches_.add_frames(frames_);
  presends_.add_frames(frames_);
  uint32_t first = 0;
  const Outcome added = links_.peers().add_job(job, size, first);
  HEADWAY_CHECK(added != Outcome::ok || first == 0);
  Peer* self = added == Outcome::ok ? peer(rank) : nullptr;
  if (!self || !prepare_queues(size)) return Outcome::no_memory;
  self->caps = transports::same_host;
  if (settings.strict) reach_.tell_overlaps(rank);
  release_.start(settings, rank);
  if (const Outcome started = handoff_.start(this, &own_armed_, -1, settings.progress != 0,
                                             uint32_t(settings.patrol_after));
      started != Outcome::ok) {
    return started;
  }
  presends_.start(release_.mechanism());
  return release_.touches() >= 0 ? handoff_.watch_faults(release_.touches()) : Outcome::ok;
}

Outcome Engine::use_node(const uint32_t* local_ranks, uint32_t count) {
  const Outcome outcome = links_.use_node(local_ranks, count, rank_, this);
  if (outcome == Outcome::ok) handoff_.publish(&node().own().armed, &node().own().waiting);
  return outcome;
}

Outcome Engine::use(transports::Transport& transport) {
  links_.use(transport);
  return transport.descriptor() < 0 ? Outcome::ok : handoff_.watch(transport.descriptor());
}

// --- moments (core.h) ---

// The order is part of it: grants come before pages, and a region's view before what lies in it.
void Core::end_marked(Request* request) {
  Engine& all = engine();
  Transfer* const transfer = requests_.transfers.find(*request);
  if (transfer && (transfer->expected | transfer->withheld)) all.streams_.end_stream(request);
  if (request->has(Mark::direct)) all.one_copy_.end_one_copy(request);
  if (request->has(Mark::release)) all.release_.end_release(request);
  if (request->has(Mark::copies)) all.copies_.end_copy(request);
  if (transfer && transfer->order) end_order(*transfer);
  if (request->has(Mark::presend)) all.presends_.end_confirm(request);
  handoff_.passive -= request->has(Mark::passive);
  request->marks = 0;
}

void Core::note_wait(Request* receive) { engine().note_wait(receive); }

void Core::note_gone(Request* receive) {
  engine().streams_.note_gone(receive);
  engine().fetches_.note_wait(receive);
}

void Core::note_copying(uint64_t ns, uint64_t n) { engine().release_.note_work(ns, n); }

void Core::tell_arrival(Request* receive, uint64_t offset, uint64_t n) {
  if (receive->is_redirected()) engine().release_.open_pages(receive, offset, n);
  note_progress(receive);
}

void Core::tell_dozers(Request* receive) { engine().release_.tell_dozers(receive); }

void Core::note_given(const Arrived& message) { engine().fetches_.note_given(message); }

bool Core::make_writable(const char* from, size_t n) {
  return engine().presends_.make_writable(from, n);
}

bool Core::is_closed(const char* from, size_t n) { return engine().release_.is_closed(from, n); }

// --- progress ---

bool Engine::flush(Peer& peer) {
  bool moved = false;
  if (!links_.flush_controls(peer, moved)) return moved;
  while (Request* request = peer.backlog.held.first()) {
    if (push_envelope(request) == Push::full) return moved;
    moved = true;
  }
  // Who waits for room alone hears of it by nothing else; only windows do.
  if (moved && listening_ != 0) handoff_.came_far();
  return streams_.stream_some(peer) || moved;
}

bool Engine::flush_busy() {
  return links_.flush_busy([this](Peer& peer) { return flush(peer); });
}

bool Engine::take_frame(Peer& peer, const shm::Cell& cell) {
  const char* body = peer.in.body(cell);
  if (!body || !deliver(peer, cell.header, body)) [[unlikely]] {
    ++counters_.garbage;
    links_.rings().refuse(peer.number, cell.header);
  }
  links_.rings().drop(peer.number, peer.in, cell);
  return true;
}

bool Engine::advance() {
  bool moved = links_.rings().reap(Links::reap_budget);
  if (links_.is_busy()) moved |= flush_busy();
  const bool copied = one_copy_.has_runnable() && one_copy_.copy_some();
  moved |= copied;
  if (streams_.overlooks()) moved |= streams_.look_at_expected();
  // Whoever has copies of its own leaves those of others alone: they do the same.
  if (!copied && one_copy_.may_help() && handoff_.driver == progress::Driver::waiting) {
    moved |= one_copy_.help_some();
  }
  if (links_.has_others()) {
    // A look at a descriptor is a system call: who waits for memory makes few.
    const bool is_due =
        handoff_.driver != progress::Driver::waiting || ++reap_round_ % reap_every == 0;
    moved |= links_.reap_others(is_due);
  }
  if (release_.is_awaited()) [[unlikely]]
    streams_.ask_for_awaited(release_.awaited());
  if (presends_.is_asked()) [[unlikely]]
    moved |= presends_.presend_some();
  return moved;
}

bool Engine::advance_for(Peer* peer) {
  if (peer && peer->in.attached()) {
    // Many looks at the one line that will change, before a round over everything else.
    for (int look = 0; look < hot_looks; ++look) {
      const shm::Cell* cell = peer->in.peek();
      if (!cell) continue;
      if (look == 0) peer->in.fetch_ahead(*cell);
      return take_frame(*peer, *cell);
    }
  } else if (peer && peer->transport) {
    if (peer->transport->reap_peer(peer->number, Links::reap_budget)) return true;
  } else {
    reap_round_ = reap_every - 1;
  }
  return advance();
}

void Engine::send_on() {
  streams_.thread_goes();
  (void)flush_busy();
  streams_.thread_is_gone();
}

// The program is not held up for a copy: it may be back in a moment. If not, our thread copies.
bool Engine::hand_on() {
  if (streams_.has_spared()) send_on();
  if (presends_.is_asked()) [[unlikely]]
    handoff_.remind(presends_.next_look_us(), progress::Handoff::While::away);
  if (!one_copy_.has_runnable()) return false;
  // Of a message whose user was released nobody else copies.
  const Request* first = one_copy_.pulls().first();
  if (first && first->is_redirected()) {
    handoff_.call_thread();
  } else {
    handoff_.remind(copy_after_us, progress::Handoff::While::away);
  }
  return true;
}

uint32_t Engine::wanted() {
  streams_.before_sleep(release_.is_awaited());
  // The user may wait for a closed page, whatever brings it.
  if (has_schedules() || release_.any_closed()) return shm::event_any;
  uint32_t events = shm::event_control;
  if (in_stage(Stage::posted)) events |= shm::event_rendezvous;
  if (links_.is_busy()) events |= shm::event_credit;
  return events;
}

bool Engine::is_idle() const {
  return under_way() == 0 && !links_.is_busy() && !one_copy_.has_runnable();
}

bool Engine::is_idle(const void* communicator, uint64_t context) const {
  for (uint32_t i = 0; i < requests_.capacity(); ++i) {
    const Request& request = *requests_.at(i);
    // Of one that is released its user has heard, and the rest is still on its way.
    if (!request.taken || request.done.load(std::memory_order_relaxed) == Done::whole) continue;
    const bool message = request.kind == RequestKind::send || request.kind == RequestKind::receive;
    if (!message && request.kind != RequestKind::schedule) continue;
    if (request.communicator == communicator || (message && request.key.context == context)) {
      return false;
    }
  }
  return true;
}

void Engine::stop_guard() {
  presends_.stop();
  release_.stop();
}

void Engine::stop_prefetching() { presends_.rest(); }

void Engine::rest() {
  stop_prefetching();
  links_.rest();
}

void Engine::wake() {
  presends_.wake();
  links_.wake();
}

// --- transports::Receiver ---

bool Engine::frame(uint32_t from, const FrameHeader& header, const char* body) {
  Peer* peer = this->peer(from);
  if (!peer) {
    lost(from, Outcome::no_memory, Peers::no_memory);
    return false;
  }
  const bool sense = deliver(*peer, header, body);
  if (!sense) ++counters_.garbage;
  return sense;
}

bool Engine::begin(uint32_t from, const FrameHeader& header, Landing& landing) {
  Peer* known = this->peer(from);
  if (!known) {
    lost(from, Outcome::no_memory, Peers::no_memory);
    return false;
  }
  Peer& peer = *known;
  const FrameKind* kind = frames_.find(header, peer.caps);
  const bool is_wild = kind && kind->envelope && key_of(header).is_wild();
  if (kind && kind->begin && !is_wild && kind->begin(kind->owner, peer, header, landing))
    return true;
  ++counters_.garbage;
  return false;
}

void Engine::landed(uint32_t, const FrameHeader& header, const Landing& landing, uint64_t arrived) {
  const Lander& lander = *landing.lander;
  if (lander.landed) lander.landed(frames_.owner_of(header.kind), header, landing, arrived);
}

void Engine::end(uint32_t from, const FrameHeader& header, const Landing& landing) {
  landing.lander->end(frames_.owner_of(header.kind), from, header, landing);
}

void Engine::sent(uint32_t, uint64_t cookie) {
  if (presends_.note_left(cookie)) return;
  Request* request = requests_.find(uint32_t(cookie), uint32_t(cookie >> 32));
  if (!request) return;
  if (request->stage() == Stage::leaving) {
    retire_send(request);
    return;
  }
  Transfer* transfer = requests_.transfers.find(*request);
  if (!transfer) return;  // the last of it went another way
  HEADWAY_CHECK(transfer->in_flight != 0);
  if (--transfer->in_flight == 0 && request->stage() == Stage::streaming &&
      transfer->moved == transfer->total) {
    complete(request, Outcome::ok);
  }
}

bool Engine::needs(uint32_t to) {
  for (uint32_t i = 0; i < requests_.capacity(); ++i) {
    const Request& request = *requests_.at(i);
    if (request.taken && !request.done.load(std::memory_order_relaxed) &&
        request.kind == RequestKind::send && request.peer->process == to) {
      return true;
    }
  }
  return false;
}

// What it has not heard was for its own use.
void Engine::left(uint32_t who) {
  Peer* peer = this->peer(who);
  if (!peer) return lost(who, Outcome::no_memory, Peers::no_memory);
  peer->left = true;
  links_.drop_controls(*peer);
}

}  // namespace headway::protocols
