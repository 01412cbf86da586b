#include "p2p/partitioned.h"

#include <climits>
#include <cstring>
#include <new>

#include "base/address.h"
#include "base/check.h"
#include "base/heap.h"
#include "objects/context.h"
#include "waiting/holding.h"

namespace headway::p2p {
namespace {

using protocols::Engine;
using protocols::Peer;
using protocols::RequestKind;
using protocols::Stage;

// What the sender tells, once.
struct Offer {
  uint64_t channel;  // the context of all its parts
  uint64_t bytes;    // of a whole round
  uint64_t partitions;
};

// State of a partition in a round.
enum : uint8_t { is_open, is_ready, is_over };

struct Partitioned {
  Engine* engine;
  Request* whole;  // null: its user has let it go
  objects::Comm* comm;
  Peer* peer;  // null: MPI_PROC_NULL
  bool receives;
  int rank;  // the other one's
  PartitionedData data;
  // Of the sender: our own, or what its message says.
  Offer offer;
  bool is_known;          // the offer is there
  Request* introduction;  // that message, while it is under way
  // Of this round.
  bool active;
  uint64_t left;         // messages that are not over, and one for who begins them
  uint8_t* states;       // by the sender's partitions
  uint64_t state_count;  // as many as there is room for
  char* staging;         // where parts land that cannot go to their place at once
  uint64_t staging_bytes;

  uint64_t part_bytes() const { return data.count * data.type.size(); }
  uint64_t bytes() const { return part_bytes() * uint64_t(data.partitions); }
  // Bytes of each of the sender's partitions.
  uint64_t sent_part_bytes() const { return offer.partitions ? offer.bytes / offer.partitions : 0; }
  UserMemory part(int number) const {
    return {base::element_at(data.buffer, uint64_t(number) * data.count, data.type.extent()),
            data.count, data.type};
  }
};

// Messages that introduce two requests to each other match apart from all others.
uint64_t introduction_context(const objects::Comm& comm) {
  return comm.context | objects::from_group_context;
}

void destroy(Partitioned* parts) {
  if (parts->receives && parts->is_known && parts->peer) {
    parts->engine->forget(parts->offer.channel);
  }
  base::heap_free(parts->states, parts->state_count);
  base::heap_free(parts->staging, parts->staging_bytes);
  parts->data.type.release();
  objects::release(parts->comm);
  base::heap_free(parts, sizeof *parts);
}

// The user's request goes back to the pool; what has introduced it may still be under way.
void let_go(Request* whole) {
  auto* parts = static_cast<Partitioned*>(whole->owner);
  HEADWAY_CHECK(!parts->active);
  parts->whole = nullptr;
  whole->communicator = nullptr;
  // Else it stays where it is: the other side has one for it, which must not match a later one's.
  if (!parts->introduction) destroy(parts);
}

void end_one(Partitioned& parts) {
  HEADWAY_CHECK(parts.active && parts.left != 0);
  if (--parts.left != 0) return;
  parts.active = false;
  parts.engine->complete(parts.whole, Outcome::ok);
}

void fail(Partitioned& parts, Outcome why) {
  if (parts.whole->outcome == Outcome::ok) parts.whole->outcome = why;
}

void part_done(Request* message) {
  auto& parts = *static_cast<Partitioned*>(message->owner);
  const auto number = uint64_t(message->key.tag);
  const uint64_t bytes = parts.sent_part_bytes();
  if (message->outcome != Outcome::ok) fail(parts, message->outcome);
  if (parts.receives) {
    if (parts.staging && bytes) {
      parts.whole->memory.write(number * bytes, parts.staging + number * bytes, bytes);
    }
    parts.states[number] = is_over;
  }
  parts.engine->give_request(message);
  end_one(parts);
}

// A message of this pair; null without memory.
Request* take_message(Partitioned& parts, const UserMemory& memory, bool receives,
                      void (*notify)(Request*)) {
  Request* message = parts.engine->take_request();
  if (!message) return nullptr;
  message->kind = receives ? RequestKind::receive : RequestKind::send;
  message->memory = memory;
  message->peer = parts.peer;
  message->communicator = parts.comm;  // which the whole keeps
  message->notify = notify;
  message->owner = &parts;
  message->status_source = parts.rank;
  return message;
}

void send_part(Partitioned& parts, int number) {
  Request* message = take_message(parts, parts.part(number), false, part_done);
  if (!message) {
    fail(parts, Outcome::no_memory);
    end_one(parts);
    return;
  }
  message->key = {parts.offer.channel, parts.comm->own.self, number};
  parts.engine->start_send(message);
}

// Room for a state of each partition. False without memory.
bool make_states(Partitioned& parts, uint64_t count) {
  parts.states = static_cast<uint8_t*>(base::heap_allocate(count ? count : 1));
  parts.state_count = parts.states ? (count ? count : 1) : 0;
  return parts.states != nullptr;
}

// Where the sender's parts land: in their places, if the receiver's data has no gaps.
bool find_landing(Partitioned& parts, char*& landing) {
  const bool fits = parts.offer.bytes == parts.bytes();
  if (!fits) {
    fail(parts, Outcome::truncated);
    parts.whole->sent_bytes = parts.offer.bytes;
    landing = nullptr;
    return true;  // no room at all: each of them is too long
  }
  landing = parts.whole->memory.flat();
  if (landing || parts.offer.bytes == 0) return true;
  if (!parts.staging) {
    parts.staging = static_cast<char*>(base::heap_allocate(parts.offer.bytes));
    if (parts.staging) parts.staging_bytes = parts.offer.bytes;
  }
  landing = parts.staging;
  return landing != nullptr;
}

// The receives of a round, of which one more than there are is left.
void receive_all(Partitioned& parts) {
  char* landing = nullptr;
  // Then they are received into nothing: left behind they would be taken for those of the next
  // round.
  if (!find_landing(parts, landing)) fail(parts, Outcome::no_memory);
  const uint64_t bytes = parts.sent_part_bytes();
  for (uint64_t number = 0; number < parts.offer.partitions; ++number) {
    const UserMemory memory =
        landing && bytes ? UserMemory(landing + number * bytes, bytes) : UserMemory();
    Request* message = take_message(parts, memory, true, part_done);
    if (!message) {
      fail(parts, Outcome::no_memory);
      end_one(parts);
      continue;
    }
    message->key = {parts.offer.channel, parts.rank, int32_t(number)};
    parts.engine->start_receive(message);
  }
}

// Engine held. Every part of the sender's is awaited from now on.
void begin_receiving(Partitioned& parts) {
  parts.left = parts.offer.partitions + 1;
  memset(parts.states, is_open, parts.state_count);
  receive_all(parts);
  end_one(parts);
}

bool is_sensible(const Offer& offer) {
  return offer.partitions <= INT_MAX && offer.bytes <= base::most_bytes &&
         objects::is_context(offer.channel) &&
         (offer.partitions == 0 || offer.bytes % offer.partitions == 0);
}

void introduced(Request* message) {
  auto* parts = static_cast<Partitioned*>(message->owner);
  const bool came = parts->receives && message->outcome == Outcome::ok && !message->cancelled &&
                    message->sent_bytes == sizeof parts->offer && is_sensible(parts->offer);
  parts->introduction = nullptr;
  parts->engine->give_request(message);
  if (came) parts->is_known = make_states(*parts, parts->offer.partitions);
  if (!parts->whole) {
    destroy(parts);
  } else if (parts->receives && parts->active) {
    if (parts->is_known) {
      begin_receiving(*parts);
    } else {
      fail(*parts, came ? Outcome::no_memory : Outcome::bad_data);
      parts->left = 1;
      end_one(*parts);
    }
  }
}

// Both sides of a pair make their requests in the same order, by which these messages match.
bool introduce(Partitioned& parts, int tag) {
  const UserMemory memory(&parts.offer, sizeof parts.offer);
  Request* message = take_message(parts, memory, parts.receives, introduced);
  if (!message) return false;
  parts.introduction = message;
  message->status_tag = tag;
  message->key = {introduction_context(*parts.comm),
                  parts.receives ? parts.rank : parts.comm->own.self, tag};
  if (parts.receives) {
    parts.engine->start_receive(message);
  } else {
    parts.engine->start_send(message);
  }
  return true;
}

Partitioned& parts_of(const Request* request) {
  HEADWAY_CHECK(is_partitioned(request));
  return *static_cast<Partitioned*>(request->owner);
}

// The sender's partitions that hold bytes of this one: from `first` to before `last`.
void find_overlap(const Partitioned& parts, int partition, uint64_t& first, uint64_t& last) {
  const uint64_t bytes = parts.part_bytes(), sent = parts.sent_part_bytes();
  first = 0;
  last = parts.offer.partitions;
  if (bytes == 0 || sent == 0) return;
  first = uint64_t(partition) * bytes / sent;
  const uint64_t end = ((uint64_t(partition) + 1) * bytes + sent - 1) / sent;
  if (end < last) last = end;
}

bool is_there(const Partitioned& parts, int partition) {
  if (!parts.active) return parts.whole->outcome == Outcome::ok;
  if (!parts.is_known || parts.offer.bytes != parts.bytes()) return false;
  uint64_t first, last;
  find_overlap(parts, partition, first, last);
  for (uint64_t number = first; number < last; ++number) {
    if (parts.states[number] != is_over) return false;
  }
  return true;
}

}  // namespace

Request* make_partitioned(waiting::Waiter& waiter, const PartitionedData& data,
                          const Address& address, bool nobody, bool receives, uint64_t channel) {
  Engine& engine = waiter.engine;
  const waiting::Holding holding(engine);
  Peer* peer = nobody ? nullptr : engine.peer(address.comm->others.process(address.rank));
  if (!nobody && !peer) return nullptr;
  void* memory = base::heap_allocate(sizeof(Partitioned));
  Request* whole = memory ? engine.take_request() : nullptr;
  if (!whole) {
    base::heap_free(memory, sizeof(Partitioned));
    return nullptr;
  }
  address.comm->retain();
  data.type.retain();
  auto* parts = new (memory) Partitioned{.engine = &engine,
                                         .whole = whole,
                                         .comm = address.comm,
                                         .peer = peer,
                                         .receives = receives,
                                         .rank = address.rank,
                                         .data = data,
                                         .offer = {},
                                         .is_known = !receives || nobody,
                                         .introduction = nullptr,
                                         .active = false,
                                         .left = 0,
                                         .states = nullptr,
                                         .state_count = 0,
                                         .staging = nullptr,
                                         .staging_bytes = 0};
  if (!receives) parts->offer = {channel, parts->bytes(), uint64_t(data.partitions)};
  whole->kind = RequestKind::partitioned;
  whole->held_by_user = whole->persistent = true;
  whole->memory = UserMemory(data.buffer, data.count * uint64_t(data.partitions), data.type);
  whole->peer = peer;
  whole->key = {address.comm->context, address.rank, address.tag};
  whole->communicator = address.comm;
  whole->owner = parts;
  whole->on_give = let_go;
  whole->status_source = address.rank;
  whole->status_tag = address.tag;
  whole->sent_bytes = receives && !nobody ? parts->bytes() : 0;
  whole->done.store(protocols::Done::whole, std::memory_order_relaxed);
  const bool has_states = receives || make_states(*parts, uint64_t(data.partitions));
  if (has_states && (nobody || introduce(*parts, address.tag))) return whole;
  whole->persistent = false;
  engine.give_request(whole);
  return nullptr;
}

void start_partitioned(waiting::Waiter& waiter, Request* request) {
  Engine& engine = waiter.engine;
  Partitioned& parts = parts_of(request);
  waiter.open(request->memory);
  request->started = true;
  engine.begin(*request);
  engine.set_stage(*request, Stage::running);
  if (engine.reach().is_kept()) [[unlikely]]
    engine.reach().note(*request);
  parts.active = true;
  parts.left = 1;
  if (!parts.receives) {
    // Complete when each of them has been ready and has left.
    parts.left += uint64_t(parts.data.partitions);
    memset(parts.states, is_open, parts.state_count);
    end_one(parts);
  } else if (parts.peer && parts.is_known) {
    begin_receiving(parts);
  } else if (!parts.introduction) {
    if (parts.peer) fail(parts, Outcome::no_memory);
    end_one(parts);
  }  // else it begins when the two have been introduced
}

bool receives_parts(const Request* request) { return parts_of(request).receives; }

int partitions_of(const Request* request) { return parts_of(request).data.partitions; }

Ready make_ready(waiting::Waiter& waiter, Request* request, int first, int last) {
  const waiting::Holding holding(waiter.engine);
  Partitioned& parts = parts_of(request);
  HEADWAY_CHECK(!parts.receives && first >= 0 && last < parts.data.partitions);
  // May let others have the engine, so it comes before the rest.
  for (int number = first; number <= last; ++number) waiter.open(parts.part(number));
  if (!parts.active) return Ready::inactive;
  for (int number = first; number <= last; ++number) {
    if (parts.states[number] != is_open) return Ready::twice;
  }
  for (int number = first; number <= last; ++number) parts.states[number] = is_ready;
  // The last one ends the round, and with it perhaps the request.
  for (int number = first; number <= last; ++number) {
    if (parts.peer) {
      send_part(parts, number);
    } else {
      end_one(parts);
    }
  }
  return Ready::done;
}

Outcome look_for(waiting::Waiter& waiter, Request* request, int partition, bool& is_here) {
  const waiting::Holding holding(waiter.engine);
  Partitioned& parts = parts_of(request);
  is_here = is_there(parts, partition);
  if (is_here) return Outcome::ok;
  waiter.test(reinterpret_cast<uintptr_t>(request));
  is_here = is_there(parts, partition);
  return parts.active ? Outcome::ok : request->outcome;
}

}  // namespace headway::p2p
