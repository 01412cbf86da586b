// Collectives of two sides that move data: barrier, broadcast, blocks.
#include "collectives/inter.h"

#include "collectives/phases.h"
#include "collectives/sides.h"

namespace headway::collectives::inter {
namespace {

constexpr uint64_t most_whole = 64 << 10;   // bytes of a broadcast that crosses as one message
constexpr uint64_t piece_bytes = 64 << 10;  // of one that crosses in pieces
constexpr uint64_t most_pieces = 256;
constexpr uint64_t most_collected = 2 << 10;  // bytes of a block that a side's first rank passes on
constexpr uint64_t most_shared = 16 << 10;    // bytes of all ranks' blocks that go to all ranks so

int smaller(int a, int b) { return a < b ? a : b; }

// The bytes of a broadcast in pieces, at least one for each rank that gets them.
struct Pieces {
  uint64_t bytes;
  uint64_t each;
  int count;

  Pieces(uint64_t all, int ranks) : bytes(all) {
    const uint64_t least = uint64_t(ranks);
    const uint64_t most = most_pieces > 2 * least ? most_pieces : 2 * least;
    uint64_t wanted = (all + piece_bytes - 1) / piece_bytes;
    wanted = wanted < least ? least : wanted > most ? most : wanted;
    each = (all + wanted - 1) / wanted;
    count = int(wanted);
  }
  UserMemory of(char* data, int piece) const {
    const uint64_t first = each * uint64_t(piece), from = first < bytes ? first : bytes;
    return UserMemory(data + from, bytes - from < each ? bytes - from : each);
  }
};

void bcast_pieces(Schedule& schedule, const Place& place, const UserMemory& memory, int root) {
  const Team own = place.team(), others = place.others();
  const bool is_root = root == root_itself, is_flat = memory.is_flat();
  const Pieces pieces(memory.bytes(), is_root ? others.size : own.size);
  char* data = is_flat ? memory.flat() : schedule.scratch(memory.bytes());
  if (schedule.failed()) return;
  const UserMemory packed(data, memory.bytes());
  const auto piece = [&](int i) { return pieces.of(data, i); };
  InOrder turns(schedule);
  if (is_root) {
    const StepId ready = is_flat ? no_step : schedule.copy(memory, packed);
    for (int i = 0; i < pieces.count; ++i) {
      schedule.send(others, i % others.size, piece(i), is_flat ? no_step : turns.next(ready));
    }
    return;
  }
  const StepId all = is_flat ? no_step : schedule.join();
  const auto come = [&](int i) { return schedule.receive(others, root, piece(i)); };
  spread(schedule, own, pieces.count, piece, come, turns, no_step, all);
  if (!is_flat) schedule.copy(packed, memory, all);
}

// Ranks beyond, the one of the own number first, so that not all turn to the same.
template <class Visit>
void each_beyond(const Place& place, Visit&& visit) {
  const int size = place.others().size;
  for (int step = 0; step < size; ++step) visit((place.team().self + step) % size);
}

// Blocks that the first rank of the side that has them gathers or deals out, so that one message
// crosses.
bool are_collected(uint64_t block, int ranks) { return ranks > 1 && block <= most_collected; }
bool are_shared_at_once(uint64_t block, int ranks) {
  return block <= most_shared / uint64_t(ranks);
}

// Each block crosses by itself.
Schedule* gather_apart(const Place& place, Kind kind, const Data& in, const Blocks& out, int root) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, kind);
  if (!schedule || root == beside_root) return schedule;
  const Team others = place.others();
  if (root != root_itself) {
    schedule->keep(in.type);
    schedule->send(others, root, in.memory());
    return schedule;
  }
  out.keep(*schedule, others.size);
  for (int rank = 0; rank < others.size; ++rank) {
    schedule->receive(others, rank, out[rank].memory());
  }
  return schedule;
}

Schedule* scatter_apart(const Place& place, Kind kind, const Blocks& in, const Data& out,
                        int root) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, kind);
  if (!schedule || root == beside_root) return schedule;
  const Team others = place.others();
  if (root != root_itself) {
    schedule->keep(out.type);
    schedule->receive(others, root, out.memory());
    return schedule;
  }
  in.keep(*schedule, others.size);
  for (int rank = 0; rank < others.size; ++rank) schedule->send(others, rank, in[rank].memory());
  return schedule;
}

// Each block to each rank beyond.
Schedule* exchange_straight(const Place& place, Kind kind, const Data& in, const Blocks& out) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, kind);
  if (!schedule) return nullptr;
  schedule->keep(in.type);
  out.keep(*schedule, place.others().size);
  each_beyond(place, [&](int rank) {
    schedule->receive(place.others(), rank, out[rank].memory());
    schedule->send(place.others(), rank, in.memory());
  });
  return schedule;
}

// What the own side has to the other one, and what that has to all ranks of this one. A way is the
// same at both its ends: `out_at_once` here is `in_at_once` there.
Schedule* exchange(const Place& place, Kind kind, const Data& in, const Blocks& out,
                   bool out_at_once, bool in_at_once) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, kind);
  if (!schedule) return nullptr;
  const Team own = place.team(), others = place.others();
  schedule->keep(in.type);
  out.keep(*schedule, others.size);
  StepId collected = no_step;
  if (out_at_once) {
    char* packed = nullptr;
    collected = collect(*schedule, own, in.memory(), 0, packed);
    if (own.self == 0 && packed) {
      const UserMemory all(packed, in.bytes() * uint64_t(own.size));
      schedule->send(others, 0, all, collected);
    }
  } else {
    schedule->send(others, own.self % others.size, in.memory());
  }
  if (in_at_once) {
    const UserMemory all = out.range(0, others.size).memory();
    const StepId ready = own.self == 0 ? schedule->receive(others, 0, all) : no_step;
    fan_out(*schedule, own, 1, all, ready);  // never the way of collect(): down, not up
    return schedule;
  }
  InOrder turns(*schedule, collected);
  const auto block = [&](int rank) { return out[rank].memory(); };
  const auto come = [&](int rank) { return schedule->receive(others, rank, block(rank)); };
  // Its receives are launched at once, behind those of collect().
  spread(*schedule, own, others.size, block, come, turns);
  return schedule;
}

}  // namespace

Schedule* barrier(const Place& place) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::barrier);
  if (!schedule) return nullptr;
  if (goes_straight(place, Kind::barrier)) {
    each_beyond(place, [&](int rank) {
      schedule->receive(place.others(), rank, {});
      schedule->send(place.others(), rank, {});
    });
    return schedule;
  }
  const Team own = place.team(), others = place.others();
  const int lanes = smaller(own.size, others.size);
  const StepId met = disseminate(*schedule, own);
  StepId ready = no_step;
  if (own.self < lanes) {
    schedule->send(others, own.self, {}, met);
    ready = schedule->receive(others, own.self, {});
  }
  fan_out(*schedule, own, lanes, {}, ready, met);
  return schedule;
}

Schedule* bcast(const Place& place, const Data& data, int root) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::bcast);
  if (!schedule || root == beside_root) return schedule;
  const Team own = place.team(), others = place.others();
  const UserMemory memory = data.memory();
  const bool is_root = root == root_itself;
  schedule->keep(data.type);
  if (goes_straight(place, Kind::bcast)) {
    if (is_root) {
      each_beyond(place, [&](int rank) { schedule->send(others, rank, memory); });
    } else {
      schedule->receive(others, root, memory);
    }
  } else if (memory.bytes() > most_whole && (is_root ? others.size : own.size) > 1) {
    bcast_pieces(*schedule, place, memory, root);
  } else if (is_root) {
    schedule->send(others, 0, memory);
  } else {
    const StepId ready = own.self == 0 ? schedule->receive(others, root, memory) : no_step;
    fan_out(*schedule, own, 1, memory, ready);
  }
  return schedule;
}

Schedule* gather(const Place& place, const Data& in, const Blocks& out, int root) {
  const Team own = place.team(), others = place.others();
  const bool is_root = root == root_itself, is_member = root >= 0;
  const bool collected = is_root     ? are_collected(out[0].bytes(), others.size)
                         : is_member ? are_collected(in.bytes(), own.size)
                                     : false;
  if (!collected || goes_straight(place, Kind::gather)) {
    return gather_apart(place, Kind::gather, in, out, root);
  }
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::gather);
  if (!schedule) return nullptr;
  if (is_root) {
    out.keep(*schedule, others.size);
    schedule->receive(others, 0, out.range(0, others.size).memory());
    return schedule;
  }
  schedule->keep(in.type);
  char* packed = nullptr;
  const StepId all = collect(*schedule, own, in.memory(), 0, packed);
  if (own.self == 0 && packed) {
    schedule->send(others, root, UserMemory(packed, in.bytes() * uint64_t(own.size)), all);
  }
  return schedule;
}

Schedule* gatherv(const Place& place, const Data& in, const Blocks& out, int root) {
  return gather_apart(place, Kind::gatherv, in, out, root);
}

Schedule* scatter(const Place& place, const Blocks& in, const Data& out, int root) {
  const Team own = place.team(), others = place.others();
  const bool is_root = root == root_itself, is_member = root >= 0;
  const bool dealt = is_root     ? are_collected(in[0].bytes(), others.size)
                     : is_member ? are_collected(out.bytes(), own.size)
                                 : false;
  if (!dealt || goes_straight(place, Kind::scatter)) {
    return scatter_apart(place, Kind::scatter, in, out, root);
  }
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::scatter);
  if (!schedule) return nullptr;
  if (is_root) {
    in.keep(*schedule, others.size);
    schedule->send(others, 0, in.range(0, others.size).memory());
    return schedule;
  }
  schedule->keep(out.type);
  const uint64_t block = out.bytes();
  char* packed = nullptr;
  StepId ready = no_step;
  if (own.self == 0) {
    packed = schedule->scratch(block, own.size);
    if (!packed) return schedule;  // it has failed
    ready = schedule->receive(others, root, UserMemory(packed, block * uint64_t(own.size)));
  }
  deal(*schedule, own, block, out, 0, packed, ready);
  return schedule;
}

Schedule* scatterv(const Place& place, const Blocks& in, const Data& out, int root) {
  return scatter_apart(place, Kind::scatterv, in, out, root);
}

Schedule* allgather(const Place& place, const Data& in, const Blocks& out) {
  if (goes_straight(place, Kind::allgather)) {
    return exchange_straight(place, Kind::allgather, in, out);
  }
  return exchange(place, Kind::allgather, in, out,
                  are_shared_at_once(in.bytes(), place.team().size),
                  are_shared_at_once(out[0].bytes(), place.others().size));
}

Schedule* allgatherv(const Place& place, const Data& in, const Blocks& out) {
  if (goes_straight(place, Kind::allgatherv)) {
    return exchange_straight(place, Kind::allgatherv, in, out);
  }
  return exchange(place, Kind::allgatherv, in, out, false, false);
}

// In each round a rank talks with at most one of the other side, and that one with it.
Schedule* alltoall(const Place& place, const Blocks& in, const Blocks& out, Kind kind) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, kind);
  if (!schedule) return nullptr;
  const Team own = place.team(), others = place.others();
  in.keep(*schedule, others.size);
  out.keep(*schedule, others.size);
  const int rounds = own.size > others.size ? own.size : others.size;
  StepId busy[most_partners];
  for (StepId& one : busy) one = no_step;
  for (int round = 0; round < rounds; ++round) {
    const int other = (place.comm->leads ? own.self + round : own.self + rounds - round) % rounds;
    if (other >= others.size) continue;
    StepId& slot = busy[round % most_partners];
    const StepId received = schedule->receive(others, other, out[other].memory(), slot);
    const StepId sent = schedule->send(others, other, in[other].memory(), slot);
    if (rounds <= most_partners) continue;
    slot = schedule->join();
    schedule->depends(slot, received);
    schedule->depends(slot, sent);
  }
  return schedule;
}

Schedule* tell(const Place& place, const Data& data, bool by_leading) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::bcast);
  if (!schedule) return nullptr;
  const Team own = place.team(), others = place.others();
  const UserMemory memory = data.memory();
  StepId ready = no_step;
  if (own.self == 0) {
    if (place.comm->leads == by_leading) {
      schedule->send(others, 0, memory);
    } else {
      ready = schedule->receive(others, 0, memory);
    }
  }
  fan_out(*schedule, own, 1, memory, ready);
  return schedule;
}

Schedule* share(const Place& place, const Data& in, const Blocks& own, const Blocks& others) {
  Schedule* schedule = Schedule::make(place.engine, place.comm, Kind::allgather);
  if (!schedule) return nullptr;
  const Team here = place.team(), there = place.others();
  const StepId all = schedule->join();
  InOrder turns(*schedule);
  const auto block = [&](int rank) { return own[rank].memory(); };
  const auto come = [&](int rank) { return schedule->copy(in.memory(), block(rank)); };
  spread(*schedule, here, here.size, block, come, turns, no_step, all);
  const UserMemory theirs = others.range(0, there.size).memory();
  StepId ready = no_step;
  if (here.self == 0) {
    schedule->send(there, 0, own.range(0, here.size).memory(), all);
    ready = schedule->receive(there, 0, theirs);
  }
  fan_out(*schedule, here, 1, theirs, ready, turns.passed());
  return schedule;
}

}  // namespace headway::collectives::inter
