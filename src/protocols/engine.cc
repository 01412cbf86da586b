#include "protocols/engine.h"

#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/text.h"

namespace headway::protocols {

using transports::Urgency;

namespace {

constexpr uint32_t reap_every = 16;     // rounds of a waiting rank between two looks at descriptors
constexpr uint32_t copy_after_us = 20;  // then the message thread makes the copy

}  // namespace

Outcome Engine::prepare(const settings::Settings& settings, uint32_t rank, uint32_t size,
                        FatalHandler fatal, uint32_t job) {
  settings_ = settings;
  rank_ = rank;
  fatal_ = fatal;
  one_copy_.allow(settings.one_copy != 0);
  copies_.prepare(settings.send_ahead);
  add_frames();
  uint32_t first = 0;
  const Outcome added = peers_.add_job(job, size, first);
  HEADWAY_CHECK(added != Outcome::ok || first == 0);
  const matching::Config matcher{.design = matching::Design(settings.matcher),
                                 .processes = size,
                                 .collective_cap = uint32_t(settings.matcher_kc),
                                 .partner_cap = uint32_t(settings.matcher_kp),
                                 .threshold = uint32_t(settings.matcher_threshold),
                                 .promises = &promises_};
  Peer* self = added == Outcome::ok ? peer(rank) : nullptr;
  if (!self || !posted.prepare(matcher) || !unexpected_.prepare(matcher)) {
    return Outcome::no_memory;
  }
  self->caps = transports::same_host;
  if (settings.strict) reach.tell_overlaps(rank);
  release_.start(settings, rank);
  if (const Outcome started = handoff.start(this, &own_armed_, -1, settings.progress != 0,
                                            uint32_t(settings.patrol_after));
      started != Outcome::ok) {
    return started;
  }
  presends_.start();
  fetches_.allow(presends_.is_on());
  return release_.touches() >= 0 ? handoff.watch_faults(release_.touches()) : Outcome::ok;
}

void Engine::forget(uint64_t context) {
  promises_.forget(context);
  for (const uint64_t gone : {context, context + 1}) {
    posted.forget(gone);
    unexpected_.forget(gone);
  }
}

Outcome Engine::use_node(const uint32_t* local_ranks, uint32_t count) {
  if (!rings_.prepare(count, this)) return Outcome::no_memory;
  for (uint32_t i = 0; i < count; ++i) {
    Peer* peer = this->peer(local_ranks[i]);
    if (!peer) return Outcome::no_memory;
    rings_.add(peer->process, peer->out, peer->in);
    peer->number = i;
    if (peer->process == rank_) continue;
    peer->transport = &rings_;
    peer->caps = rings_.caps();
  }
  handoff.publish(&node.own().armed, &node.own().waiting);
  return Outcome::ok;
}

Outcome Engine::use(transports::Transport& transport) {
  HEADWAY_CHECK(other_count_ < most_transports);
  others_[other_count_++] = &transport;
  peers_.reach_by(transport);
  return transport.descriptor() < 0 ? Outcome::ok : handoff.watch(transport.descriptor());
}

void Engine::connect(Peer& peer) {
  peer.connected = true;
  if (!peer.transport || peer.transport->connect(peer.number, peer.chunk) != Outcome::ok) return;
  const uint64_t eager = peer.on_this_host() ? settings_.eager_max_shm : settings_.eager_max_tcp;
  peer.eager_max = eager < peer.chunk ? eager : peer.chunk;
}

void Engine::give_request(Request* request) {
  if (request->done.load(std::memory_order_relaxed) == Done::released) [[unlikely]] {
    request->held_by_user = request->persistent = false;  // complete() gives it
    return;
  }
  if (request->on_give) request->on_give(request);
  // Its next life must not find anything of this one.
  request->on_give = nullptr;
  request->notify = nullptr;
  request->owner = nullptr;
  request->communicator = nullptr;
  request->mode = Mode::standard;
  HEADWAY_CHECK(request->stage() == Stage::idle && !request->is_redirected());
  request->marks = 0;
  request->outcome = Outcome::ok;
  request->persistent = request->started = false;
  request->cancelled = request->cancelling = false;
  request->held_by_user = request->blocking = false;
  request->traffic = {};
  request->kind = RequestKind::null;
  requests_.give(request);
}

void Engine::complete(Request* request, Outcome outcome) {
  // Who was let go reads it meanwhile: what is as it was is not written.
  if (outcome != Outcome::ok && request->outcome == Outcome::ok) request->outcome = outcome;
  HEADWAY_CHECK(request->taken && request->done.load(std::memory_order_relaxed) != Done::whole);
  if (request->stage() != Stage::idle) set_stage(*request, Stage::idle);
  release_.note_end();
  request->awaited = false;
  if (request->marks) [[unlikely]]
    end_marked(request);
  --handoff.pending;
  HEADWAY_CHECK(handoff.passive >= 0 && handoff.pending >= handoff.passive);
  request->done.store(Done::whole, std::memory_order_release);  // pairs with waiting
  handoff.completed();
  if (request->notify) {
    request->notify(request);
  } else if (!request->held_by_user) {
    give_request(request);
  }
}

// The order is part of it: grants come before pages, and a region's view before what lies in it.
void Engine::end_marked(Request* request) {
  Transfer* const transfer = requests_.transfers.find(*request);
  if (transfer && (transfer->expected | transfer->withheld)) streams_.end_stream(request);
  if (request->has(Mark::direct)) one_copy_.end_one_copy(request);
  if (request->has(Mark::release)) release_.end_release(request);
  if (request->has(Mark::copies)) copies_.end_copy(request);
  if (transfer && transfer->order) end_order(*transfer);
  if (request->has(Mark::presend)) presends_.end_confirm(request);
  handoff.passive -= request->has(Mark::passive);
  request->marks = 0;
}

void Engine::fail(Outcome why, Peer& peer, const char* story) {
  if (peer.lost) return;
  peer.lost = true;
  fatal_(why, peer.rank, story);
}

// --- progress ---

void Engine::mark_busy(Peer& peer) {
  if (peer.busy) return;
  peer.busy = true;
  if (!busy_.push(&peer)) fail(Outcome::no_memory, peer, "no memory for the list of busy peers");
}

bool Engine::flush(Peer& peer) {
  bool moved = false;
  while (ControlFrame* frame = peer.controls.first()) {
    const Push pushed = push_frame(peer, frame->header, frame->body, frame->header.length, nullptr,
                                   0, Urgency::control);
    if (pushed == Push::full) return moved;
    peer.controls.remove(frame);
    base::heap_free(frame, sizeof *frame);
    moved = true;
  }
  while (Request* request = peer.held.first()) {
    if (push_envelope(request) == Push::full) return moved;
    moved = true;
  }
  return streams_.stream_some(peer) || moved;
}

bool Engine::flush_busy() {
  bool moved = false;
  for (size_t i = 0; i < busy_.size();) {
    Peer& peer = *busy_[i];
    moved |= flush(peer);
    if (peer.controls.empty() && peer.held.empty() && peer.streams.empty()) {
      peer.busy = false;
      busy_.remove_unordered(i);
      moved = true;  // somebody may wait until nobody is busy
    } else {
      ++i;
    }
  }
  return moved;
}

bool Engine::take_frame(Peer& peer, const shm::Cell& cell) {
  const char* body = peer.in.body(cell);
  if (!body || !deliver(peer, cell.header, body)) [[unlikely]] {
    ++counters.garbage;
    rings_.refuse(peer.number, cell.header);
  }
  rings_.drop(peer.number, peer.in, cell);
  return true;
}

// A look at a descriptor is a system call: who waits for memory makes few.
bool Engine::reap_others() {
  const bool is_due =
      handoff.driver != progress::Driver::waiting || ++reap_round_ % reap_every == 0;
  bool moved = false;
  for (uint32_t i = 0; i < other_count_; ++i) {
    if (is_due || others_[i]->descriptor() < 0) moved |= others_[i]->reap(reap_budget);
  }
  return moved;
}

bool Engine::advance() {
  bool moved = rings_.reap(reap_budget);
  if (!busy_.empty()) moved |= flush_busy();
  if (one_copy_.has_runnable()) moved |= one_copy_.copy_some();
  if (streams_.overlooks()) moved |= streams_.look_at_expected();
  if (one_copy_.may_help() && handoff.driver == progress::Driver::waiting) {
    moved |= one_copy_.help_some();
  }
  if (other_count_) moved |= reap_others();
  if (release_.is_awaited()) [[unlikely]]
    streams_.ask_for_awaited();
  if (presends_.is_asked()) [[unlikely]]
    moved |= presends_.presend_some();
  return moved;
}

bool Engine::advance_for(Peer* peer) {
  if (peer && peer->in.attached()) {
    // Many looks at the one line that will change, before a round over everything else.
    for (int look = 0; look < hot_looks; ++look) {
      if (const shm::Cell* cell = peer->in.peek()) return take_frame(*peer, *cell);
    }
  } else if (peer && peer->transport) {
    if (peer->transport->reap_peer(peer->number, reap_budget)) return true;
  } else {
    reap_round_ = reap_every - 1;
  }
  return advance();
}

// The program is not held up for a copy: it may be back in a moment. If not, our thread copies.
void Engine::hand_on() {
  streams_.thread_goes();
  if (presends_.is_asked()) [[unlikely]]
    handoff.remind(presends_.next_look_us());
  if (!one_copy_.has_runnable()) return;
  // Of a message whose user was released nobody else copies.
  const Request* first = one_copy_.pulls().first();
  if (first && first->is_redirected()) {
    handoff.call_thread();
  } else {
    handoff.remind(copy_after_us);
  }
}

uint32_t Engine::wanted() {
  streams_.before_sleep();
  // The user may wait for a closed page, whatever brings it.
  if (schedules || release_.any_closed()) return shm::event_any;
  uint32_t events = shm::event_control;
  if (in_stage(Stage::posted)) events |= shm::event_rendezvous;
  if (!busy_.empty()) events |= shm::event_credit;
  return events;
}

bool Engine::is_idle() const {
  return under_way() == 0 && busy_.empty() && !one_copy_.has_runnable();
}

bool Engine::is_idle(const void* communicator, uint64_t context) const {
  for (uint32_t i = 0; i < requests_.capacity(); ++i) {
    const Request& request = *requests_.at(i);
    if (!request.taken || request.done.load(std::memory_order_relaxed)) continue;
    const bool message = request.kind == RequestKind::send || request.kind == RequestKind::receive;
    if (!message && request.kind != RequestKind::schedule) continue;
    if (request.communicator == communicator || (message && request.key.context == context)) {
      return false;
    }
  }
  return true;
}

void Engine::stop_guard() {
  fetches_.allow(false);
  presends_.stop();
  release_.stop();
}

void Engine::stop_prefetching() {
  presends_.rest();
  fetches_.allow(false);
}

void Engine::rest() {
  stop_prefetching();
  for (uint32_t i = 0; i < other_count_; ++i) others_[i]->rest();
}

bool Engine::is_delivered() const {
  for (uint32_t i = 0; i < other_count_; ++i) {
    if (!others_[i]->is_delivered()) return false;
  }
  return true;
}

void Engine::hosts() {
  for (uint32_t i = 0; i < other_count_; ++i) others_[i]->look_at_hosts();
}

void Engine::wake() {
  presends_.wake();
  fetches_.allow(presends_.is_on());
  for (uint32_t i = 0; i < other_count_; ++i) others_[i]->wake();
}

// --- transports::Receiver ---

bool Engine::frame(uint32_t from, const FrameHeader& header, const char* body) {
  Peer* peer = this->peer(from);
  if (!peer) {
    lost(from, Outcome::no_memory, Peers::no_memory);
    return false;
  }
  const bool sense = deliver(*peer, header, body);
  if (!sense) ++counters.garbage;
  return sense;
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

void Engine::unsent(int by) { handoff.pending += by; }

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
  while (ControlFrame* frame = peer->controls.first()) {
    peer->controls.remove(frame);
    base::heap_free(frame, sizeof *frame);
  }
}

void Engine::lost(uint32_t from, Outcome why, const char* story) {
  if (Peer* peer = find_peer(from)) return fail(why, *peer, story);
  fatal_(why, from, story);
}

}  // namespace headway::protocols
