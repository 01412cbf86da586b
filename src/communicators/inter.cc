#include "communicators/inter.h"

#include "collectives/inter.h"
#include "communicators/detail/steps.h"
#include "communicators/detail/words.h"
#include "objects/context.h"
#include "waiting/holding.h"

namespace headway::communicators {
namespace {

using collectives::Data;
using protocols::UserMemory;

// --- the leaders ---

// In the peer communicator's context: the leaders' messages. create_group's have no collective bit.
constexpr uint64_t leaders_apart = objects::creation_context | 1;
constexpr uint64_t groups_apart = objects::creation_context | objects::from_group_context;

// What one leader tells the other before the members of its group.
struct Hello {
  uint64_t context;          // that it would take
  uint64_t size;             // of its group
  uint64_t group, expected;  // marks of its group and of what it takes for the other's, or 0
};

// What a leader tells its group before the members of the other's.
struct Verdict {
  uint64_t context = 0;
  uint32_t size = 0;  // of the remote group
  Outcome outcome = Outcome::ok;
  Meeting meeting = Meeting::made;
  bool leads = false;
  bool mixed = false;  // of several jobs, in both groups together
};
static_assert(sizeof(Verdict) == 16);

UserMemory memory_of(base::Vec<uint64_t>& identities) {
  return {identities.data(), identities.size() * sizeof identities[0]};
}

// Both leaders hear the same: `ok` if both have that.
Outcome agree_on(const Makers& makers, const Line& line, Outcome own) {
  uint64_t mine = uint64_t(own), theirs = 0;
  const Outcome swapped =
      swap(makers, line, UserMemory(&mine, sizeof mine), UserMemory(&theirs, sizeof theirs));
  if (swapped != Outcome::ok) return swapped;
  return own != Outcome::ok ? own : Outcome(theirs);
}

// Numbers of processes mean something in one process alone, identities the same in all. A leader
// without memory for the other group takes part to the end, so that the other one need not wait for
// it.
Outcome meet(const Makers& makers, const Line& line, const objects::Group& group,
             const objects::Group* expected, Verdict& verdict, objects::Group*& remote) {
  Hello mine{makers.new_context(), uint64_t(group.size), mark_of(makers, group, ""),
             expected ? mark_of(makers, *expected, "") : 0};
  Hello theirs{};
  if (const Outcome swapped =
          swap(makers, line, UserMemory(&mine, sizeof mine), UserMemory(&theirs, sizeof theirs));
      swapped != Outcome::ok) {
    return swapped;
  }
  remote = objects::Group::make(int(theirs.size));
  int shared = objects::undefined_rank;
  base::Vec<uint64_t> told, heard;
  const bool has_room = remote && identities_of(makers, group, told) && heard.resize(theirs.size);
  // Without room, what comes is longer than the nothing that it goes to.
  Outcome own = swap(makers, line, memory_of(told), memory_of(heard));
  if (!has_room) own = Outcome::no_memory;
  if (own == Outcome::ok && !members_of(makers, heard, *remote)) own = Outcome::unsupported;
  if (own == Outcome::ok) own = find_shared(group, *remote, shared);
  if (const Outcome both = agree_on(makers, line, own); both != Outcome::ok) return both;
  const auto is_as_expected = [](const Hello& one, const Hello& other) {
    return one.expected == 0 || one.expected == other.group;
  };
  if (shared != objects::undefined_rank) {
    verdict.meeting = Meeting::shared;
  } else if (!is_as_expected(mine, theirs) || !is_as_expected(theirs, mine)) {
    verdict.meeting = Meeting::differ;
  }
  for (const base::Vec<uint64_t>* side : {&told, &heard}) {
    for (const uint64_t one : *side) verdict.mixed |= one >> 32 != told[0] >> 32;
  }
  verdict.size = uint32_t(remote->size);
  verdict.leads = mine.context < theirs.context;
  verdict.context = verdict.leads ? mine.context : theirs.context;
  return Outcome::ok;
}

// --- their groups ---

// The leader, which has the remote group, tells its members. A rank without memory for them passes
// on what comes, since others of its group may hear it from this one alone.
template <class TellGroup>
Outcome tell_members(const Makers& makers, objects::Group* remote, bool has_members, uint32_t size,
                     TellGroup&& tell_group) {
  constexpr uint32_t most = 512;  // at once
  uint64_t identities[most] = {};
  const auto each = [&](uint32_t from, uint32_t count, auto&& visit) {
    const waiting::Holding holding(makers.waiter.engine);
    const protocols::Peers& peers = makers.waiter.engine.links().peers();
    for (uint32_t i = 0; i < count; ++i) visit(peers, remote->members[from + i], identities[i]);
  };
  Outcome outcome = remote ? Outcome::ok : Outcome::no_memory;
  for (uint32_t at = 0; at < size; at += most) {
    const uint32_t count = size - at < most ? size - at : most;
    if (has_members) {
      each(at, count, [](const protocols::Peers& peers, uint32_t member, uint64_t& identity) {
        identity = peers.identity_of(member);
      });
    }
    const Outcome told = tell_group(identities, uint64_t(count) * sizeof *identities);
    if (outcome == Outcome::ok) outcome = told;
    if (has_members || !remote || told != Outcome::ok) continue;
    each(at, count, [&](const protocols::Peers& peers, uint32_t& member, uint64_t identity) {
      member = peers.process_with(identity);
      if (member == protocols::Peers::nobody) outcome = Outcome::unsupported;
    });
  }
  return outcome;
}

// A leader comes with its verdict and the remote group, which this takes over; the others get both.
// tell_group(data, bytes): from the leader to all of its group. settle(outcome): what all of both
// sides find, of which one may know a process that another has not met.
template <class TellGroup, class Settle>
Outcome conclude(const Makers& makers, const objects::Comm& parent, objects::Group* group,
                 Verdict verdict, objects::Group* remote, TellGroup&& tell_group, Settle&& settle,
                 objects::Comm*& made, Meeting& meeting) {
  Outcome outcome = tell_group(&verdict, sizeof verdict);
  if (outcome == Outcome::ok) outcome = verdict.outcome;
  meeting = verdict.meeting;
  if (outcome == Outcome::ok && meeting == Meeting::made) {
    const bool has_members = remote != nullptr;
    if (!remote) remote = objects::Group::make(int(verdict.size));
    outcome = tell_members(makers, remote, has_members, verdict.size, tell_group);
    if (verdict.mixed) outcome = settle(outcome);
    if (outcome == Outcome::ok) {
      remote->belong(group->session);
      outcome = adopt(makers, parent, verdict.context, group, made, remote, verdict.leads);
    }
  }
  if (remote) remote->release();
  return outcome;
}

// --- both sides ---

uint32_t own_process(const objects::Comm& comm) { return comm.own.process(comm.own.self); }

// Numbers of all ranks, `width` from each.
struct Rows {
  base::Vec<int64_t> own, others;
};

Outcome share(const Makers& makers, objects::Comm* comm, int64_t* row, size_t width, Rows& rows) {
  if (!rows.own.resize(width * size_t(comm->own.size)) ||
      !rows.others.resize(width * size_t(comm->others.size))) {
    return Outcome::no_memory;
  }
  const auto blocks = [&](base::Vec<int64_t>& numbers) {
    return collectives::Blocks::even(numbers.data(), width, int64_type());
  };
  collectives::Schedule* schedule =
      collectives::inter::share(place_of(makers, comm), Data{row, width, int64_type()},
                                blocks(rows.own), blocks(rows.others));
  return schedule ? schedule->run(makers.waiter) : Outcome::no_memory;
}

constexpr size_t split_width = 3;  // color, key, context

// The ranks of a side that have that color; null if there are none. `first`: the one that is its
// rank 0.
Outcome group_of_color(const objects::Team& side, const base::Vec<int64_t>& rows, int color,
                       objects::Group*& group, int& first) {
  base::Vec<Place> places;
  for (int rank = 0; rank < side.size; ++rank) {
    const int64_t* row = rows.data() + size_t(rank) * split_width;
    if (row[0] == color && !places.push({int(row[1]), rank})) return Outcome::no_memory;
  }
  group = nullptr;
  if (places.empty()) return Outcome::ok;
  if (!sort_places(places)) return Outcome::no_memory;
  group = objects::Group::make(int(places.size()));
  if (!group) return Outcome::no_memory;
  for (size_t i = 0; i < places.size(); ++i) group->members[i] = side.process(places[i].rank);
  first = places[0].rank;
  return Outcome::ok;
}

constexpr size_t create_width = 2;  // place in the group, context

// The group that the ranks of a side have passed, by the place that each has in it; null if they
// have none. `first`: the one that is its rank 0.
Outcome group_of_places(const objects::Team& side, const base::Vec<int64_t>& rows,
                        objects::Group*& group, int& first) {
  constexpr uint32_t nobody = UINT32_MAX;
  int size = 0;
  for (int rank = 0; rank < side.size; ++rank) size += rows[size_t(rank) * create_width] >= 0;
  group = nullptr;
  if (size == 0) return Outcome::ok;
  group = objects::Group::make(size);
  if (!group) return Outcome::no_memory;
  for (int i = 0; i < size; ++i) group->members[i] = nobody;
  bool fits = true;
  for (int rank = 0; rank < side.size; ++rank) {
    const int64_t place = rows[size_t(rank) * create_width];
    if (place < 0) continue;
    fits = fits && place < size && group->members[place] == nobody;
    if (!fits) break;
    group->members[place] = side.process(rank);
    if (place == 0) first = rank;
  }
  if (fits) return Outcome::ok;
  group->release();
  group = nullptr;
  return Outcome::bad_argument;  // not all have passed the same group
}

}  // namespace

Outcome create_inter(const Makers& makers, objects::Comm* local, int leader,
                     const OtherLeader& other, objects::Comm*& made, Meeting& meeting) {
  made = nullptr;
  Verdict verdict;
  objects::Group* remote = nullptr;
  if (local->own.self == leader && !other.comm) {
    verdict.meeting = Meeting::refused;
  } else if (local->own.self == leader) {
    const Line line{{other.comm, other.rank, other.tag}, leaders_apart};
    verdict.outcome = meet(makers, line, *local->group, nullptr, verdict, remote);
  }
  const auto tell_group = [&](void* data, uint64_t bytes) {
    const Data told{data, bytes, &datatypes::predefined(datatypes::BasicType::byte)};
    collectives::Schedule* schedule = collectives::bcast(place_of(makers, local), told, leader);
    return schedule ? schedule->run(makers.waiter) : Outcome::no_memory;
  };
  const auto settle = [&](Outcome own) {
    Outcome all = agree_on(makers, local, own);
    if (local->own.self == leader) {
      all = agree_on(makers, Line{{other.comm, other.rank, other.tag}, leaders_apart}, all);
    }
    const Outcome told = tell_group(&all, sizeof all);
    return told == Outcome::ok ? all : told;
  };
  return conclude(makers, *local, local->group, verdict, remote, tell_group, settle, made, meeting);
}

Outcome create_inter_from_groups(const Makers& makers, objects::Group* local, int leader,
                                 const objects::Group* remote_group, int remote_leader,
                                 const char* tag, objects::Comm*& made, Meeting& meeting) {
  objects::Comm* everyone = makers.registry.everyone;
  made = nullptr;
  Verdict verdict;
  objects::Group* remote = nullptr;
  if (local->self == leader && !remote_group) {
    verdict.meeting = Meeting::refused;
  } else if (local->self == leader) {
    // The leaders alone, in the order of their numbers, which both have alike.
    objects::Group pair;
    uint32_t both[] = {local->members[leader], remote_group->members[remote_leader]};
    if (both[0] > both[1]) {
      both[0] = both[1];
      both[1] = local->members[leader];
    }
    pair.size = 2;
    pair.members = both;
    const uint64_t apart = groups_apart | mark_of(makers, pair, tag);
    const int rank = everyone->group->find(remote_group->members[remote_leader]);
    verdict.outcome =
        meet(makers, {{everyone, rank, 0}, apart}, *local, remote_group, verdict, remote);
  }
  const uint64_t apart = groups_apart | mark_of(makers, *local, tag);
  const auto tell_group = [&](void* data, uint64_t bytes) {
    return tell(makers, everyone, *local, leader, 0, apart, UserMemory(data, bytes))
               ? Outcome::ok
               : Outcome::no_memory;
  };
  const auto settle = [](Outcome own) { return own; };  // api/ lets in one job alone
  return conclude(makers, *everyone, local, verdict, remote, tell_group, settle, made, meeting);
}

Outcome merge(const Makers& makers, objects::Comm* comm, bool high, objects::Comm*& made) {
  made = nullptr;
  // What the first rank of the side that leads says, which is its `high` and the context; then the
  // other one's `high`.
  int64_t leading[] = {high, 0}, other = high;
  if (comm->leads && comm->own.self == 0) leading[1] = int64_t(makers.new_context());
  const collectives::Place place = place_of(makers, comm);
  const auto hear = [&](int64_t* numbers, uint64_t count, bool by_leading) {
    collectives::Schedule* schedule =
        collectives::inter::tell(place, Data{numbers, count, int64_type()}, by_leading);
    return schedule ? schedule->run(makers.waiter) : Outcome::no_memory;
  };
  if (const Outcome heard = hear(leading, 2, true); heard != Outcome::ok) return heard;
  if (const Outcome heard = hear(&other, 1, false); heard != Outcome::ok) return heard;
  const bool leading_first = leading[0] <= other;
  const bool is_first = comm->leads == leading_first;
  const objects::Team first = is_first ? comm->own : comm->others;
  const objects::Team second = is_first ? comm->others : comm->own;
  objects::Group* group = objects::Group::make(first.size + second.size);
  if (!group) return Outcome::no_memory;
  for (int i = 0; i < first.size; ++i) group->members[i] = first.process(i);
  for (int i = 0; i < second.size; ++i) group->members[first.size + i] = second.process(i);
  group->find_self(own_process(*comm));
  group->belong(comm->group->session);
  const Outcome outcome = adopt(makers, *comm, uint64_t(leading[1]), group, made);
  group->release();
  return outcome;
}

Outcome split_sides(const Makers& makers, objects::Comm* comm, int color, int key,
                    objects::Comm*& made) {
  made = nullptr;
  int64_t row[] = {color, key, int64_t(makers.new_context())};
  Rows rows;
  if (const Outcome shared = share(makers, comm, row, split_width, rows); shared != Outcome::ok) {
    return shared;
  }
  if (color < 0) return Outcome::ok;
  objects::Group* group = nullptr;
  objects::Group* remote = nullptr;
  int first = 0, remote_first = 0;
  Outcome outcome = group_of_color(comm->own, rows.own, color, group, first);
  if (outcome == Outcome::ok) {
    outcome = group_of_color(comm->others, rows.others, color, remote, remote_first);
  }
  if (group) group->find_self(own_process(*comm));
  if (outcome == Outcome::ok && remote) {
    const int64_t* chosen = comm->leads ? rows.own.data() + size_t(first) * split_width
                                        : rows.others.data() + size_t(remote_first) * split_width;
    group->belong(comm->group->session);
    remote->belong(comm->group->session);
    outcome = adopt(makers, *comm, uint64_t(chosen[2]), group, made, remote, comm->leads);
  }
  if (group) group->release();
  if (remote) remote->release();
  return outcome;
}

Outcome create_of_sides(const Makers& makers, objects::Comm* comm, objects::Group* group,
                        objects::Comm*& made) {
  made = nullptr;
  int64_t row[] = {group->self, int64_t(makers.new_context())};
  Rows rows;
  if (const Outcome shared = share(makers, comm, row, create_width, rows); shared != Outcome::ok) {
    return shared;
  }
  objects::Group* own = nullptr;
  objects::Group* remote = nullptr;
  int first = 0, remote_first = 0;
  Outcome outcome = group_of_places(comm->own, rows.own, own, first);
  if (outcome == Outcome::ok) {
    outcome = group_of_places(comm->others, rows.others, remote, remote_first);
  }
  if (outcome == Outcome::ok && group->self >= 0 && remote) {
    const int64_t* chosen = comm->leads ? rows.own.data() + size_t(first) * create_width
                                        : rows.others.data() + size_t(remote_first) * create_width;
    objects::Likeness likeness = objects::Likeness::different;
    outcome = objects::compare(*group, *own, likeness);
    if (outcome == Outcome::ok && likeness != objects::Likeness::identical) {
      outcome = Outcome::bad_argument;
    }
    if (outcome == Outcome::ok) {
      remote->belong(comm->group->session);
      outcome = adopt(makers, *comm, uint64_t(chosen[1]), group, made, remote, comm->leads);
    }
  }
  if (own) own->release();
  if (remote) remote->release();
  return outcome;
}

}  // namespace headway::communicators
