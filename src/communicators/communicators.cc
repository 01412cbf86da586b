#include "communicators/communicators.h"

#include "base/vec.h"
#include "collectives/inter.h"
#include "communicators/detail/steps.h"
#include "communicators/inter.h"
#include "objects/context.h"
#include "waiting/holding.h"

namespace headway::communicators {

using collectives::Data;
using objects::creation_context;    // create_group's messages, in the parent's context
using objects::from_group_context;  // with it: create_from_group's

Outcome adopt(const Makers& makers, const objects::Comm& parent, uint64_t context,
              objects::Group* group, objects::Comm*& made, objects::Group* remote, bool leads) {
  made = objects::make_comm(context, group, parent.errhandler);
  if (!made) return Outcome::no_memory;
  if (remote) objects::bridge(*made, remote, leads);
  made->handle = makers.registry.comms.add(made);
  if (made->handle) return Outcome::ok;
  objects::release(made);
  made = nullptr;
  return Outcome::no_resource;
}

namespace {

// A duplicate has the same topology.
Outcome adopt_copy(const Makers& makers, const objects::Comm& parent, uint64_t context,
                   objects::Comm*& made) {
  objects::Group* remote = parent.is_inter() ? parent.peers : nullptr;
  const Outcome outcome = adopt(makers, parent, context, parent.group, made, remote, parent.leads);
  if (outcome != Outcome::ok || !parent.topology) return outcome;
  made->topology = parent.topology;
  made->topology->retain();
  return outcome;
}

collectives::Schedule* tell_context(const Makers& makers, objects::Comm* comm, uint64_t& context) {
  const Data data{&context, 1, int64_type()};
  const bool chooses = !comm->is_inter() || comm->leads;
  if (chooses && comm->own.self == 0) context = makers.new_context();
  const collectives::Place place = place_of(makers, comm);
  return comm->is_inter() ? collectives::inter::tell(place, data, true)
                          : collectives::bcast(place, data, 0);
}

}  // namespace

bool sort_places(base::Vec<Place>& places) {
  // Merge sort from the bottom: a thousand ranks with random keys must not cost a million moves.
  base::Vec<Place> other;
  if (!other.resize(places.size())) return false;
  Place* from = places.data();
  Place* to = other.data();
  const size_t n = places.size();
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t start = 0; start < n; start += 2 * width) {
      const size_t middle = start + width < n ? start + width : n;
      const size_t end = start + 2 * width < n ? start + 2 * width : n;
      size_t left = start, right = middle;
      for (size_t at = start; at < end; ++at) {
        const bool take_left = left < middle && (right >= end || from[left].key <= from[right].key);
        to[at] = take_left ? from[left++] : from[right++];
      }
    }
    Place* swap = from;
    from = to;
    to = swap;
  }
  for (size_t i = 0; from != places.data() && i < n; ++i) places[i] = from[i];
  return true;
}

bool tell(const Makers& makers, objects::Comm* comm, const objects::Group& group, int root, int tag,
          uint64_t apart, const protocols::UserMemory& memory) {
  protocols::Engine& engine = makers.waiter.engine;
  bool complete = true;
  // One message with the engine held; waits for it.
  const auto exchange = [&](bool sends, int number) {
    const int rank = (number + root) % group.size;
    const p2p::Address address{comm, comm->group->find(group.members[rank]), tag};
    protocols::Request* request = sends
                                      ? p2p::make_send(engine, memory, address, p2p::Mode::standard)
                                      : p2p::make_receive(engine, memory, address);
    if (!request) {
      complete = false;
      return;
    }
    request->key.context ^= apart;
    if (sends) {
      engine.start_send(request);
    } else {
      engine.start_receive(request);
    }
    makers.waiter.request(request);
    engine.give_request(request);
  };
  const waiting::Holding holding(engine);
  makers.waiter.open(memory);
  // A binomial tree over the ranks counted from the root.
  const int self = (group.self - root + group.size) % group.size;
  int distance = 1;
  for (; distance < group.size; distance *= 2) {
    if (!(self & distance)) continue;
    exchange(false, self - distance);
    break;
  }
  for (distance /= 2; distance > 0; distance /= 2) {
    if (self + distance < group.size) exchange(true, self + distance);
  }
  return complete;
}

Outcome swap(const Makers& makers, const Line& line, const protocols::UserMemory& out,
             const protocols::UserMemory& in) {
  protocols::Engine& engine = makers.waiter.engine;
  const waiting::Holding holding(engine);
  makers.waiter.open(out, in);
  protocols::Request* coming = p2p::make_receive(engine, in, line.other);
  protocols::Request* leaving = p2p::make_send(engine, out, line.other, p2p::Mode::standard);
  Outcome outcome = Outcome::no_memory;
  if (coming && leaving) {
    outcome = Outcome::ok;
    coming->key.context ^= line.apart;
    leaving->key.context ^= line.apart;
    engine.start_receive(coming);
    engine.start_send(leaving);
    for (protocols::Request* one : {coming, leaving}) {
      makers.waiter.request(one);
      if (one->outcome != Outcome::ok) outcome = one->outcome;
    }
  }
  for (protocols::Request* one : {coming, leaving}) {
    if (one) engine.give_request(one);
  }
  return outcome;
}

collectives::Place place_of(const Makers& makers, objects::Comm* comm) {
  return {makers.waiter.engine, comm, collectives::nothing_forced};
}

Outcome run_whole(const Makers& makers, collectives::Schedule* schedule) {
  protocols::Request* request = schedule ? schedule->start(makers.waiter) : nullptr;
  if (!request) return Outcome::no_memory;
  protocols::Engine& engine = makers.waiter.engine;
  const waiting::Holding holding(engine);
  makers.waiter.request(request);
  const Outcome outcome = request->outcome;
  engine.give_request(request);
  return outcome;
}

Outcome share_numbers(const Makers& makers, objects::Comm* comm, base::Vec<int64_t>& numbers,
                      size_t width, const int64_t* own) {
  if (!numbers.resize(width * size_t(comm->own.size))) return Outcome::no_memory;
  for (size_t i = 0; i < width; ++i) numbers[size_t(comm->own.self) * width + i] = own[i];
  const auto blocks = collectives::Blocks::even(numbers.data(), width, int64_type());
  collectives::Schedule* schedule =
      collectives::allgather({makers.waiter.engine, comm, collectives::nothing_forced}, {}, blocks);
  return schedule ? schedule->run(makers.waiter) : Outcome::no_memory;
}

bool identities_of(const Makers& makers, const objects::Group& group,
                   base::Vec<uint64_t>& identities) {
  if (!identities.resize(size_t(group.size))) return false;
  const waiting::Holding holding(makers.waiter.engine);
  const protocols::Peers& peers = makers.waiter.engine.links().peers();
  for (int i = 0; i < group.size; ++i) identities[size_t(i)] = peers.identity_of(group.members[i]);
  return true;
}

bool members_of(const Makers& makers, const base::Vec<uint64_t>& identities,
                objects::Group& group) {
  const waiting::Holding holding(makers.waiter.engine);
  const protocols::Peers& peers = makers.waiter.engine.links().peers();
  for (size_t i = 0; i < identities.size(); ++i) {
    group.members[i] = peers.process_with(identities[i]);
    if (group.members[i] == protocols::Peers::nobody) return false;
  }
  return true;
}

uint64_t mark_of(const Makers& makers, const objects::Group& group, const char* tag) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&hash](uint64_t part) { hash = (hash ^ part) * 0x100000001b3; };
  for (const char* at = tag; *at; ++at) add(uint8_t(*at));
  const waiting::Holding holding(makers.waiter.engine);
  const protocols::Peers& peers = makers.waiter.engine.links().peers();
  for (int i = 0; i < group.size; ++i) add(peers.identity_of(group.members[i]) + 256);
  return hash >> 3;
}

namespace {

// The group's first rank chooses a context and tells it to the others. 0: no memory.
uint64_t agree(const Makers& makers, objects::Comm* comm, const objects::Group& group, int tag,
               uint64_t apart) {
  uint64_t context = group.self == 0 ? makers.new_context() : 0;
  const protocols::UserMemory memory(&context, sizeof context);
  return tell(makers, comm, group, 0, tag, apart, memory) ? context : 0;
}

}  // namespace

Outcome dup(const Makers& makers, objects::Comm* comm, objects::Comm*& made) {
  made = nullptr;
  uint64_t context = 0;
  collectives::Schedule* schedule = tell_context(makers, comm, context);
  if (!schedule) return Outcome::no_memory;
  if (const Outcome told = schedule->run(makers.waiter); told != Outcome::ok) return told;
  return adopt_copy(makers, *comm, context, made);
}

protocols::Request* start_dup(const Makers& makers, objects::Comm* comm, objects::Comm*& made) {
  if (adopt_copy(makers, *comm, 0, made) != Outcome::ok) return nullptr;
  // The number lands in the communicator itself.
  collectives::Schedule* schedule = tell_context(makers, comm, made->context);
  protocols::Request* request = schedule ? schedule->start(makers.waiter) : nullptr;
  if (request) return request;
  makers.registry.comms.remove(made->handle);
  objects::release(made);
  made = nullptr;
  return nullptr;
}

Outcome split(const Makers& makers, objects::Comm* comm, int color, int key, objects::Comm*& made) {
  if (comm->is_inter()) return split_sides(makers, comm, color, key, made);
  made = nullptr;
  const int64_t own[] = {color, key, int64_t(makers.new_context())};
  base::Vec<int64_t> all;
  if (const Outcome shared = share_numbers(makers, comm, all, 3, own); shared != Outcome::ok) {
    return shared;
  }
  if (color < 0) return Outcome::ok;
  base::Vec<Place> places;
  for (int i = 0; i < comm->own.size; ++i) {
    if (all[size_t(i) * 3] != color) continue;
    if (!places.push({int(all[size_t(i) * 3 + 1]), i})) return Outcome::no_memory;
  }
  if (!sort_places(places)) return Outcome::no_memory;
  objects::Group* group = objects::Group::make(int(places.size()));
  if (!group) return Outcome::no_memory;
  for (size_t i = 0; i < places.size(); ++i) group->members[i] = comm->own.process(places[i].rank);
  group->find_self(makers.waiter.engine.rank());
  group->belong(comm->group->session);
  const uint64_t context = uint64_t(all[size_t(places[0].rank) * 3 + 2]);
  const Outcome outcome = adopt(makers, *comm, context, group, made);
  group->release();
  return outcome;
}

Outcome create(const Makers& makers, objects::Comm* comm, objects::Group* group,
               objects::Comm*& made) {
  if (comm->is_inter()) return create_of_sides(makers, comm, group, made);
  made = nullptr;
  const int64_t own = int64_t(makers.new_context());
  base::Vec<int64_t> all;
  if (const Outcome shared = share_numbers(makers, comm, all, 1, &own); shared != Outcome::ok) {
    return shared;
  }
  if (group->self < 0) return Outcome::ok;
  const int leader = comm->group->find(group->members[0]);
  return adopt(makers, *comm, uint64_t(all[size_t(leader)]), group, made);
}

Outcome create_group(const Makers& makers, objects::Comm* comm, objects::Group* group, int tag,
                     objects::Comm*& made) {
  made = nullptr;
  if (group->self < 0) return Outcome::ok;
  const uint64_t context = agree(makers, comm, *group, tag, creation_context);
  return context ? adopt(makers, *comm, context, group, made) : Outcome::no_memory;
}

Outcome create_from_group(const Makers& makers, objects::Group* group, const char* tag,
                          objects::Comm*& made) {
  objects::Comm* everyone = makers.registry.everyone;
  const uint64_t apart = creation_context | from_group_context | mark_of(makers, *group, tag);
  const uint64_t context = agree(makers, everyone, *group, 0, apart);
  made = nullptr;
  return context ? adopt(makers, *everyone, context, group, made) : Outcome::no_memory;
}

bool makes_from_group(uint64_t context) {
  constexpr uint64_t both = creation_context | from_group_context;
  return (context & both) == both;
}

}  // namespace headway::communicators
