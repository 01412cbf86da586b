#include "rma/windows.h"

#include <cstring>
#include <new>

#include "base/check.h"
#include "base/heap.h"

namespace headway::rma {

using protocols::Peer;
using protocols::Request;
using transports::Urgency;

namespace {

static_assert(most_body == transports::always_whole);
static_assert(sizeof(Head) + sizeof(Run) + 2 * most_element <= most_body);

// Never torn down: the message thread may still be inside when the program ends.
alignas(Windows) char memory_of_all[sizeof(Windows)];

}  // namespace

Windows& windows() { return *std::launder(reinterpret_cast<Windows*>(memory_of_all)); }

void start(protocols::Messages& engine, bool may_copy) {
  (new (memory_of_all) Windows)->prepare(engine, may_copy);
}

void Windows::prepare(protocols::Messages& engine, bool may_copy) {
  engine_ = &engine;
  may_copy_ = may_copy;
  using protocols::by;
  constexpr uint32_t least = sizeof(Head) + sizeof(Run);
  protocols::Frames& frames = engine.frames();
  const auto add = [&](Kind kind, const char* name, auto whole, uint32_t from, uint32_t to) {
    frames.add(uint8_t(kind),
               {.name = name, .owner = this, .whole = whole, .least = from, .most = to});
  };
  add(Kind::put, "put", by<&Windows::take_put>, least, most_body);
  add(Kind::get, "get", by<&Windows::take_get>, least, most_body);
  add(Kind::accumulate, "accumulate", by<&Windows::take_accumulate>, least, most_body);
  add(Kind::swap, "compare and swap", by<&Windows::take_swap>, least, most_body);
  add(Kind::answer, "answer of a window", by<&Windows::take_answer>, 0, most_body);
  add(Kind::flush, "flush of a window", by<&Windows::take_flush>, 0, 0);
  add(Kind::flushed, "answer to a flush", by<&Windows::take_flushed>, 0, 0);
  add(Kind::lock, "lock of a window", by<&Windows::take_lock>, 0, 0);
  add(Kind::locked, "answer to a lock", by<&Windows::take_locked>, 0, 0);
  add(Kind::unlock, "unlock of a window", by<&Windows::take_unlock>, 0, 0);
  add(Kind::post, "post of a window", by<&Windows::take_post>, 0, 0);
  add(Kind::complete, "complete of a window", by<&Windows::take_complete>, 0, 0);
  add(Kind::look, "look at a lock of a window", by<&Windows::take_look>, 0, 0);
}

bool Windows::add(Window& window) {
  uint32_t index = 0;
  while (index < slots_.size() && slots_[index].window) ++index;
  if (index == most_windows || (index == slots_.size() && !slots_.push({nullptr, 0}))) return false;
  Slot& slot = slots_[index];
  slot.window = &window;
  if (++slot.generation << index_bits == 0) ++slot.generation;  // 0 is nobody's number
  window.id = slot.generation << index_bits | index;
  ++count_;
  engine_->listen(1);
  return true;
}

void Windows::remove(Window& window) {
  Slot& slot = slots_[window.id & (most_windows - 1)];
  HEADWAY_CHECK(slot.window == &window);
  slot.window = nullptr;
  --count_;
  engine_->listen(-1);
}

Peer* Windows::peer_of(Target& target) const {
  if (!target.peer) {
    target.peer = engine_->peer(target.window->comm->own.process(int(target.rank)));
  }
  return target.peer;
}

bool Windows::batch(Target& target, Kind kind, int32_t tag, const Run* runs, uint32_t count,
                    const char* data, uint64_t bytes) {
  if (count > Batch::most_places || bytes > Batch::most_bytes) return false;
  if (!target.batch) {
    void* memory = base::heap_allocate(sizeof(Batch));
    if (!memory) return false;
    target.batch = new (memory) Batch{};
  }
  Batch& batch = *target.batch;
  const bool fits = batch.kind == kind && batch.tag == tag &&
                    batch.count + count <= Batch::most_places &&
                    batch.bytes + bytes <= Batch::most_bytes;
  if (batch.count != 0 && !fits) send_batch(target);
  batch.kind = kind;
  batch.tag = tag;
  memcpy(batch.runs + batch.count, runs, count * sizeof(Run));
  memcpy(batch.data + batch.bytes, data, bytes);
  batch.count += count;
  batch.bytes += uint32_t(bytes);
  return true;
}

uint32_t Windows::take_batch(Target& target, char (&body)[most_body]) {
  Batch& batch = *target.batch;
  const Head head{0, batch.count, 0};
  const size_t runs = batch.count * sizeof(Run);
  memcpy(body, &head, sizeof head);
  memcpy(body + sizeof head, batch.runs, runs);
  memcpy(body + sizeof head + runs, batch.data, batch.bytes);
  const auto length = uint32_t(sizeof head + runs + batch.bytes);
  batch.count = batch.bytes = 0;
  return length;
}

void Windows::send_batch(Target& target) {
  if (!target.has_batch()) return;
  Batch& batch = *target.batch;
  char body[most_body];
  FrameHeader header;
  header.tag = batch.tag;
  header.length = take_batch(target, body);  // first: this is not before itself
  ++target.sent;
  send(target, batch.kind, header, body);
}

void Windows::send(Target& target, Kind kind, FrameHeader header, const void* body) {
  Window& window = *target.window;
  HEADWAY_CHECK(target.peer);
  if (target.has_batch()) [[unlikely]]
    send_batch(target);
  header.kind = uint8_t(kind);
  header.word = target.id;
  header.source = int32_t(window.self);
  reply(*target.peer, header, body);
}

// To oneself it is there at once.
void Windows::reply(Peer& peer, FrameHeader header, const void* body) {
  if (peer.transport) {
    engine_->links().control(peer, header, body, Urgency::data);
    return;
  }
  const protocols::FrameKind* kind = engine_->frames().find(header, peer.caps);
  const bool sense = kind && kind->whole(kind->owner, peer, header, static_cast<const char*>(body));
  HEADWAY_CHECK(sense);
  (void)sense;
}

Target* Windows::find(const Peer& peer, const FrameHeader& header) const {
  const uint32_t index = header.word & (most_windows - 1);
  Window* window = index < slots_.size() ? slots_[index].window : nullptr;
  if (!window || window->id != header.word) return nullptr;
  if (header.source < 0 || header.source >= window->comm->own.size ||
      window->comm->own.process(header.source) != peer.process) {
    return nullptr;
  }
  Target& target = window->target(header.source);
  target.peer = const_cast<Peer*>(&peer);
  return &target;
}

// --- operations ---

// False: it was garbage.
bool Windows::note(Carried carried) {
  if (carried == Carried::garbage) return false;
  ++counters.served;
  counters.refused += carried == Carried::refused;
  return true;
}

// One that its origin asks about later. What was refused counts, too, or it would wait for ever.
bool Windows::finish(Target& origin, Carried carried) {
  if (!note(carried)) return false;
  ++origin.done;
  origin.refused |= carried == Carried::refused;
  return true;
}

// One whose origin waits for what it brings.
bool Windows::answer(Target& origin, const Places& places, Carried carried, const char* out) {
  if (!note(carried)) return false;
  const bool refused = carried == Carried::refused;
  FrameHeader header;
  header.kind = uint8_t(Kind::answer);
  header.word = places.head().request;
  header.context = places.head().offset;
  header.source = int32_t(origin.window->self);
  header.flags = refused ? flag_refused : 0;
  header.sequence = uint32_t(places.bytes());
  header.length = refused ? 0 : header.sequence;
  reply(*origin.peer, header, refused ? nullptr : out);
  return true;
}

bool Windows::take_put(Peer& peer, const FrameHeader& header, const char* body) {
  Target* origin = find(peer, header);
  Places places;
  if (!origin || !places.read(body, header.length)) return false;
  return finish(*origin, put(origin->window->own, places));
}

bool Windows::take_get(Peer& peer, const FrameHeader& header, const char* body) {
  Target* origin = find(peer, header);
  Places places;
  if (!origin || !places.read(body, header.length)) return false;
  char out[most_body];
  return answer(*origin, places, get(origin->window->own, places, out), out);
}

bool Windows::take_accumulate(Peer& peer, const FrameHeader& header, const char* body) {
  Target* origin = find(peer, header);
  Places places;
  Work work;
  if (!origin || !places.read(body, header.length) || !read_work(header.tag, work)) return false;
  const Memory& memory = origin->window->own;
  if (!(header.flags & flag_answer)) {
    return finish(*origin, accumulate(memory, places, work, nullptr));
  }
  char before[most_body];
  return answer(*origin, places, accumulate(memory, places, work, before), before);
}

bool Windows::take_swap(Peer& peer, const FrameHeader& header, const char* body) {
  Target* origin = find(peer, header);
  Places places;
  Work work;
  if (!origin || !places.read(body, header.length) || !read_work(header.tag, work)) return false;
  char before[most_body];
  return answer(*origin, places, swap(origin->window->own, places, work, before), before);
}

bool Windows::take_answer(Peer& peer, const FrameHeader& header, const char* body) {
  Request* request = engine_->requests().by_wire_id(header.word, protocols::RequestKind::access,
                                                    peer, protocols::Stage::running);
  if (!request) return false;
  auto& target = *static_cast<Target*>(request->owner);
  const bool refused = header.flags & flag_refused;
  const uint64_t bytes = header.sequence, total = request->memory.bytes();
  if (bytes == 0 || bytes > most_body || header.length != (refused ? 0 : bytes) ||
      header.context > total || bytes > total - header.context ||
      bytes > total - request->sent_bytes || target.unanswered == 0) {
    return false;
  }
  if (!refused) request->memory.write(header.context, body, bytes);
  if (refused) request->outcome = Outcome::outside;
  --target.unanswered;
  request->sent_bytes += bytes;
  if (request->sent_bytes == total) engine_->complete(request, Outcome::ok);
  tell_waiters();  // whether they wait for it or for room
  return true;
}

// --- synchronisation ---

bool Windows::take_flush(Peer& peer, const FrameHeader& header, const char*) {
  Target* origin = find(peer, header);
  if (!origin || origin->done != header.context) return false;
  tell_flushed(*origin);
  return true;
}

void Windows::tell_flushed(Target& origin) {
  FrameHeader header;
  header.context = origin.done;
  header.flags = origin.refused ? flag_refused : 0;
  origin.refused = false;
  send(origin, Kind::flushed, header);
}

bool Windows::take_flushed(Peer& peer, const FrameHeader& header, const char*) {
  Target* target = find(peer, header);
  if (!target || header.context < target->told || header.context > target->sent) return false;
  target->told = header.context;
  ++target->answers;
  target->failed |= (header.flags & flag_refused) != 0;
  tell_waiters();
  return true;
}

bool Windows::take_lock(Peer& peer, const FrameHeader& header, const char*) {
  Target* origin = find(peer, header);
  if (!origin) return false;
  Window& window = *origin->window;
  Locks& locks = window.locks;
  if (locks.held_by(origin->rank) != Locks::Kind::none || locks.waits(origin->rank)) return false;
  const auto kind = header.flags & flag_exclusive ? Locks::Kind::exclusive : Locks::Kind::shared;
  locks.ask(origin->rank, kind, [&](uint32_t next) { tell_locked(window, next); });
  return true;
}

bool Windows::take_locked(Peer& peer, const FrameHeader& header, const char*) {
  Target* target = find(peer, header);
  if (!target || target->hold == Hold::none || target->hold == Hold::unchecked || target->given) {
    return false;
  }
  target->given = true;
  tell_waiters();
  return true;
}

bool Windows::take_unlock(Peer& peer, const FrameHeader& header, const char*) {
  Target* origin = find(peer, header);
  if (!origin || origin->done != header.context) return false;
  Window& window = *origin->window;
  if (window.locks.held_by(origin->rank) == Locks::Kind::none) return false;
  if (header.flags & flag_answer) tell_flushed(*origin);
  window.locks.give_back(origin->rank, [&](uint32_t next) { tell_locked(window, next); });
  return true;
}

bool Windows::take_look(Peer& peer, const FrameHeader& header, const char*) {
  Target* origin = find(peer, header);
  if (!origin) return false;
  Window& window = *origin->window;
  window.locks.serve([&](uint32_t next) { tell_locked(window, next); });
  return true;
}

bool Windows::take_post(Peer& peer, const FrameHeader& header, const char*) {
  Target* target = find(peer, header);
  if (!target) return false;
  ++target->posts;
  tell_waiters();
  return true;
}

bool Windows::take_complete(Peer& peer, const FrameHeader& header, const char*) {
  Target* origin = find(peer, header);
  if (!origin) return false;
  ++origin->completes;
  tell_waiters();
  return true;
}

}  // namespace headway::rma
