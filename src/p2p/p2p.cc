#include "p2p/p2p.h"

#include <initializer_list>

#include "base/check.h"
#include "base/heap.h"
#include "p2p/bsend.h"
#include "p2p/unfinished.h"
#include "waiting/holding.h"
#include "waiting/many.h"

namespace headway::p2p {
namespace {

using protocols::Engine;
using protocols::Peer;
using protocols::RequestKind;
using protocols::Stage;

FrameHeader envelope_of(const Address& to) {
  FrameHeader envelope;
  envelope.tag = to.tag;
  envelope.source = to.comm->own.self;
  envelope.context = to.comm->context;
  return envelope;
}

// Null without memory.
Peer* peer_of(Engine& engine, const Address& address) {
  return engine.peer(address.comm->others.process(address.rank));
}

// What a request keeps alive for its user: the communicator, and a datatype with gaps.
void let_go(Request* request) {
  if (const datatypes::Type* type = request->memory.type()) type->release();
  auto* comm = static_cast<objects::Comm*>(request->communicator);
  if (comm && !comm->lasts) objects::release(comm);
  request->communicator = nullptr;
}

// Most keep nothing: then nothing is called when they are given back.
void keep(Request* request, const Address& address) {
  request->communicator = address.comm;
  const datatypes::Type* type = request->memory.type();
  if (address.comm->lasts && !type) [[likely]]
    return;
  if (!address.comm->lasts) address.comm->retain();
  if (type) type->retain();
  request->on_give = let_go;
}

Request* at_place(const void* list, uint32_t place) {
  return static_cast<Request* const*>(list)[place];
}

// The pool gives clean requests (Core::give_request).
void reset(Request* request, RequestKind kind, Mode mode) {
  request->kind = kind;
  request->mode = mode;
  request->held_by_user = true;
}

Request* make_send(Engine& engine, const UserMemory& memory, const Address& to, Mode mode,
                   Peer& peer) {
  Request* request = engine.take_request();
  if (!request) return nullptr;
  reset(request, RequestKind::send, mode);
  request->memory = memory;
  request->key = {to.comm->context, to.comm->own.self, to.tag};
  request->peer = &peer;
  request->status_source = to.rank;
  request->status_tag = to.tag;
  return request;
}

// In the two functions that call it: a call costs as much as half of it.
[[gnu::always_inline]] inline Request* receive_of(Engine& engine, const UserMemory& memory,
                                                  const Address& from) {
  HEADWAY_CHECK(from.rank >= matching::any && from.rank < from.comm->others.size);
  Peer* peer = nullptr;
  if (from.rank != matching::any) {
    peer = peer_of(engine, from);
    if (!peer) return nullptr;
  }
  Request* request = engine.take_request();
  if (!request) return nullptr;
  reset(request, RequestKind::receive, Mode::standard);
  request->memory = memory;
  request->key = {from.comm->context, from.rank, from.tag};
  request->peer = peer;
  return request;
}

}  // namespace

Request* make_send(Engine& engine, const UserMemory& memory, const Address& to, Mode mode) {
  Peer* peer = peer_of(engine, to);
  return peer ? make_send(engine, memory, to, mode, *peer) : nullptr;
}

Request* make_receive(Engine& engine, const UserMemory& memory, const Address& from) {
  return receive_of(engine, memory, from);
}

void read_status(const Request& request, Status& status) {
  status.source = request.status_source;
  status.tag = request.status_tag;
  const bool brings =
      request.kind == RequestKind::receive || request.kind == RequestKind::partitioned;
  status.bytes = brings ? request.status_bytes() : 0;
  status.sent_bytes = request.sent_bytes;
  status.cancelled = request.cancelled;
}

Outcome send(waiting::Waiter& waiter, const UserMemory& memory, const Address& to, Mode mode) {
  Engine& engine = waiter.engine;
  waiting::Holding holding(engine, waiting::Holding::For::moment);
  waiter.open(memory);
  Peer* peer = peer_of(engine, to);
  if (!peer) [[unlikely]]
    return Outcome::no_memory;
  if (!peer->on_this_host()) {
    holding.stay();  // a socket may take half of it
    engine.hear(*peer);
  }
  if (mode != Mode::synchronous && engine.send_now(*peer, envelope_of(to), memory)) [[likely]]
    return Outcome::ok;
  holding.stay();
  Request* request = make_send(engine, memory, to, mode, *peer);
  Outcome outcome = Outcome::no_memory;
  if (request) {
    request->blocking = true;
    if (engine.copies().copy_aside(request)) {
      engine.start_send(request);
      return Outcome::ok;
    }
    engine.start_send(request);
    waiting::Many(waiter, request).until_all();
    outcome = request->outcome;
    engine.give_request(request);
  }
  return outcome;
}

Outcome receive(waiting::Waiter& waiter, const UserMemory& memory, const Address& from,
                bool unmatched, Status& status) {
  Engine& engine = waiter.engine;
  waiting::Holding holding(engine, waiting::Holding::For::moment);
  waiter.open(memory);
  // From whom nothing has come or been awaited yet, nothing comes at this very moment.
  Peer* peer =
      from.rank == matching::any ? nullptr : engine.find_peer(from.comm->others.process(from.rank));
  if (peer && !holding.is_polled() &&
      engine.receive_now(*peer, {from.comm->context, from.rank, from.tag}, memory,
                         status.sent_bytes)) [[likely]] {
    status.source = from.rank;
    status.tag = from.tag;
    status.bytes = status.sent_bytes;
    return Outcome::ok;
  }
  if (engine.receive_arrived({from.comm->context, from.rank, from.tag}, memory, status.sent_bytes,
                             status.source, status.tag)) {
    status.bytes = status.sent_bytes;
    return Outcome::ok;
  }
  holding.stay();
  Request* request = make_receive(engine, memory, from);
  Outcome outcome = Outcome::no_memory;
  if (request) {
    holding.waits();
    engine.note_wait(request);
    engine.start_receive(request);
    waiting::Many(waiter, request, unmatched).until_all();
    outcome = request->outcome;
    read_status(*request, status);
    engine.give_request(request);
  }
  return outcome;
}

Request* start_send(waiting::Waiter& waiter, const UserMemory& memory, const Address& to,
                    Mode mode) {
  Engine& engine = waiter.engine;
  waiting::Holding holding(engine, waiting::Holding::For::moment);
  waiter.open(memory);
  Peer* peer = peer_of(engine, to);
  if (!peer) return nullptr;
  const bool here = peer->out.attached();
  if (!here) {
    holding.stay();
    engine.hear(*peer);
  }
  Request* request = make_send(engine, memory, to, mode, *peer);
  if (!request) return nullptr;
  keep(request, to);
  begin_unfinished(request, request->on_give);
  // Most are short, and over at once: nothing has to know of such a request but its user.
  if (here && mode != Mode::synchronous && !engine.reach().tells() &&
      engine.send_now(*peer, envelope_of(to), memory)) [[likely]] {
    request->done.store(protocols::Done::whole, std::memory_order_relaxed);
    return request;
  }
  holding.stay();
  engine.start_send(request);
  return request;
}

Request* start_receive(waiting::Waiter& waiter, const UserMemory& memory, const Address& from) {
  Engine& engine = waiter.engine;
  waiting::Holding holding(engine);
  waiter.open(memory);
  Request* request = receive_of(engine, memory, from);
  if (request) {
    // Some of it may be copied at once, which is no absence.
    if (protocols::Release::may_have_pages(*request)) holding.stay();
    keep(request, from);
    begin_unfinished(request, request->on_give);
    engine.start_receive(request);
  }
  return request;
}

Request* make_complete(waiting::Waiter& waiter, objects::Comm* comm, int source, int tag) {
  Engine& engine = waiter.engine;
  const waiting::Holding holding(engine);
  Request* request = engine.take_request();
  if (request) {
    reset(request, RequestKind::null, Mode::standard);
    request->memory = {};
    keep(request, {comm, 0, 0});
    request->peer = nullptr;
    request->status_source = source;
    request->status_tag = tag;
    request->sent_bytes = 0;
    request->done.store(1, std::memory_order_relaxed);
  }
  return request;
}

Outcome send_receive(waiting::Waiter& waiter, const UserMemory& out, const Address& to,
                     const UserMemory& in, const Address& from, Status& status) {
  Engine& engine = waiter.engine;
  waiting::Holding holding(engine);
  waiter.open(out, in);
  Request* receive = make_receive(engine, in, from);
  Request* send = make_send(engine, out, to, Mode::standard);
  Outcome outcome = Outcome::no_memory;
  if (receive && send) {
    holding.waits();
    engine.note_wait(receive);
    engine.start_receive(receive);
    const bool aside = engine.copies().copy_aside(send);
    engine.start_send(send);
    if (aside) send = nullptr;  // nobody's
    const Request* const both[] = {receive, send};
    waiting::Many(waiter, both, 2, at_place, {}).until_all();
    outcome = receive->outcome != Outcome::ok || !send ? receive->outcome : send->outcome;
    read_status(*receive, status);
  }
  if (receive) engine.give_request(receive);
  if (send) engine.give_request(send);
  return outcome;
}

// --- both ways as one request ---

namespace {

// Goes with the whole.
struct Pair {
  Engine* engine;
  Request* whole;
  int left;
  void* copy;  // what is sent, if it was copied for that
  uint64_t copy_size;
};

void half_done(Request* half) {
  auto* pair = static_cast<Pair*>(half->owner);
  Request* whole = pair->whole;
  if (half->kind == RequestKind::receive) {
    whole->status_source = half->status_source;
    whole->status_tag = half->status_tag;
    whole->sent_bytes = half->sent_bytes;
  }
  if (half->outcome != Outcome::ok) whole->outcome = half->outcome;
  Engine& engine = *pair->engine;
  engine.give_request(half);
  if (--pair->left == 0) engine.complete(whole, Outcome::ok);
}

void let_go_pair(Request* whole) {
  auto* pair = static_cast<Pair*>(whole->owner);
  base::heap_free(pair->copy, pair->copy_size);
  base::heap_free(pair, sizeof *pair);
  let_go(whole);
}

}  // namespace

Request* start_send_receive(waiting::Waiter& waiter, const UserMemory& out, const Address& to,
                            const UserMemory& in, const Address& from, void* copy,
                            uint64_t copy_size) {
  Engine& engine = waiter.engine;
  auto* pair = static_cast<Pair*>(base::heap_allocate(sizeof(Pair)));
  const waiting::Holding holding(engine);
  waiter.open(out, in);
  Request* whole = engine.take_request();
  Request* receive = make_receive(engine, in, from);
  Request* send = make_send(engine, out, to, Mode::standard);
  if (!pair || !whole || !receive || !send) {
    for (Request* request : {whole, receive, send}) {
      if (request) engine.give_request(request);
    }
    base::heap_free(pair, sizeof(Pair));
    base::heap_free(copy, copy_size);
    return nullptr;
  }
  reset(whole, RequestKind::receive, Mode::standard);
  whole->memory = in;
  whole->peer = receive->peer;
  keep(whole, to);
  whole->on_give = let_go_pair;
  whole->owner = pair;
  engine.begin(*whole);
  engine.set_stage(*whole, Stage::running);
  *pair = {&engine, whole, 2, copy, copy_size};
  keep(receive, from);
  keep(send, to);
  receive->owner = send->owner = pair;
  receive->notify = send->notify = half_done;
  engine.start_receive(receive);
  engine.start_send(send);
  return whole;
}

// --- probes ---

namespace {

protocols::Arrived* find(waiting::Waiter& waiter, const Address& from, bool wait, bool take,
                         Status& status) {
  Engine& engine = waiter.engine;
  const matching::Key key{from.comm->context, from.rank, from.tag};
  const waiting::Holding holding(engine);
  protocols::Arrived* message = engine.unexpected().probe(key);
  if (!message) {
    if (wait) {
      waiter.until([&] { return (message = engine.unexpected().probe(key)) != nullptr; },
                   from.rank == matching::any ? nullptr : peer_of(engine, from));
    } else {
      waiter.test(uint64_t(uint32_t(from.rank)) << 32 | uint32_t(from.tag));
      message = engine.unexpected().probe(key);
    }
  }
  if (message) {
    status.source = message->key.source;
    status.tag = message->key.tag;
    status.bytes = status.sent_bytes = message->size;
    if (take) {
      engine.unexpected().remove(message);
      from.comm->retain();
      message->communicator = from.comm;
    }
  }
  return message;
}

}  // namespace

bool probe(waiting::Waiter& waiter, const Address& from, bool wait, Status& status) {
  return find(waiter, from, wait, false, status) != nullptr;
}

protocols::Arrived* matched_probe(waiting::Waiter& waiter, const Address& from, bool wait,
                                  Status& status) {
  return find(waiter, from, wait, true, status);
}

protocols::Arrived* find_message(waiting::Waiter& waiter, uint32_t number, uint32_t generation) {
  protocols::Arrived* message = waiter.engine.unexpected().find_message(number, generation);
  return message && !message->queued ? message : nullptr;
}

Request* start_matched_receive(waiting::Waiter& waiter, const UserMemory& memory,
                               protocols::Arrived* message) {
  Engine& engine = waiter.engine;
  const waiting::Holding holding(engine);
  waiter.open(memory);
  const Address from{comm_of(*message), message->key.source, message->key.tag};
  Request* request = make_receive(engine, memory, from);
  if (request) {
    keep(request, from);
    begin_unfinished(request, request->on_give);
    engine.start_matched_receive(request, message);
  }
  return request;
}

Outcome matched_receive(waiting::Waiter& waiter, const UserMemory& memory,
                        protocols::Arrived* message, Status& status) {
  Engine& engine = waiter.engine;
  waiting::Holding holding(engine);
  waiter.open(memory);
  const Address from{comm_of(*message), message->key.source, message->key.tag};
  Request* request = make_receive(engine, memory, from);
  Outcome outcome = Outcome::no_memory;
  if (request) {
    holding.waits();
    engine.note_wait(request);
    engine.start_matched_receive(request, message);
    waiting::Many(waiter, request).until_all();
    outcome = request->outcome;
    read_status(*request, status);
    engine.give_request(request);
  }
  return outcome;
}

// --- persistent ---

Request* make_persistent(waiting::Waiter& waiter, const UserMemory& memory, const Address& address,
                         bool receives, Mode mode) {
  Engine& engine = waiter.engine;
  const waiting::Holding holding(engine);
  Request* request =
      receives ? make_receive(engine, memory, address) : make_send(engine, memory, address, mode);
  if (request) {
    keep(request, address);
    request->persistent = true;
    request->done.store(1, std::memory_order_relaxed);
  }
  return request;
}

void restart(waiting::Waiter& waiter, Request* request) {
  Engine& engine = waiter.engine;
  waiter.open(request->memory);
  request->started = true;
  if (request->kind == RequestKind::send && request->mode == Mode::buffered) {
    restart_buffered(waiter, request);
  } else if (request->kind == RequestKind::send) {
    engine.start_send(request);
  } else if (request->kind == RequestKind::receive) {
    // The last message has filled in from whom it came.
    if (request->key.source == matching::any) request->peer = nullptr;
    engine.start_receive(request);
  }
}

}  // namespace headway::p2p
