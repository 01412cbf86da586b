#include "spawn/meet.h"

#include <cstring>

#include "base/vec.h"
#include "collectives/collectives.h"
#include "objects/context.h"
#include "p2p/p2p.h"
#include "spawn/junction.h"
#include "waiting/holding.h"
#include "waiting/waiter.h"

namespace headway::spawn {
namespace {

using collectives::Blocks;
using collectives::Data;
using protocols::UserMemory;

// In the new communicator's context: the first messages, which make the links.
constexpr uint64_t first_apart = objects::creation_context;

// Of one side. More is a lie, for which nobody asks for memory.
constexpr uint32_t most_processes = 1 << 20;

// What a root tells the other one, and then what it tells its group.
struct Start {
  Trouble trouble = Trouble::none;
  uint8_t unused[3] = {};
  uint32_t size = 0;     // of the other group
  uint64_t context = 0;  // of the new communicator: of the side that leads
  Secret secret;         // of the junction; not told, both roots have it
  char name[40] = "";    // of the junction
};
static_assert(sizeof(Start) == 72);

class Meeting {
 public:
  Meeting(const Home& home, objects::Comm* local, int root, Talk* talk, bool leads)
      : home_(home), local_(local), root_(root), talk_(talk), leads_(leads) {}

  Trouble run(Trouble own, objects::Errhandler* handler, objects::Comm*& made);

 private:
  bool is_root() const { return local_->own.self == root_; }
  uint32_t own_size() const { return uint32_t(local_->own.size); }
  bool tell(void* data, uint64_t bytes);
  bool run_whole(collectives::Schedule* schedule);
  bool collect(const void* own, uint64_t bytes, void* all);
  bool swap(const void* out, size_t out_bytes, void* in, size_t in_bytes);
  Trouble begin(Trouble own);
  Trouble introduce();
  bool is_context_theirs() const;
  Trouble take_in();
  Trouble agree(Trouble own);
  Trouble adopt(objects::Errhandler* handler, objects::Comm*& made);
  Outcome touch(objects::Comm* comm);

  const Home& home_;
  objects::Comm* local_;
  const int root_;
  Talk* talk_;
  const bool leads_;
  Start start_;
  Junction* junction_ = nullptr;
  base::Vec<Row> others_;
  base::Vec<uint32_t> members_;  // numbers of those
};

const datatypes::Type* byte_type() { return &datatypes::predefined(datatypes::BasicType::byte); }

bool Meeting::run_whole(collectives::Schedule* schedule) {
  protocols::Request* request = schedule ? schedule->start(home_.waiter) : nullptr;
  if (!request) return false;
  protocols::Engine& engine = home_.waiter.engine;
  const waiting::Holding holding(engine);
  home_.waiter.request(request);
  const Outcome outcome = request->outcome;
  engine.give_request(request);
  return outcome == Outcome::ok;
}

bool Meeting::tell(void* data, uint64_t bytes) {
  if (own_size() == 1) return true;
  const collectives::Place place{home_.waiter.engine, local_, collectives::nothing_forced};
  return run_whole(collectives::bcast(place, Data{data, bytes, byte_type()}, root_));
}

// `all`: at the root alone.
bool Meeting::collect(const void* own, uint64_t bytes, void* all) {
  const collectives::Place place{home_.waiter.engine, local_, collectives::nothing_forced};
  const Data in{const_cast<void*>(own), bytes, byte_type()};
  return run_whole(collectives::gather(place, in, Blocks::even(all, bytes, byte_type()), root_));
}

// One root after the other: what both sent at once might fill both sockets.
bool Meeting::swap(const void* out, size_t out_bytes, void* in, size_t in_bytes) {
  const waiting::Holding holding(home_.waiter.engine);
  if (leads_) return talk_->receive(in, in_bytes) && talk_->send(out, out_bytes);
  return talk_->send(out, out_bytes) && talk_->receive(in, in_bytes);
}

// The roots know of each other, and the groups of both.
Trouble Meeting::begin(Trouble own) {
  if (is_root()) {
    start_.trouble = own;
    Start mine;
    mine.size = own_size();
    mine.context = leads_ ? home_.new_context() : 0;
    if (own == Trouble::none) {
      Start theirs;
      if (!swap(&mine, sizeof mine, &theirs, sizeof theirs)) {
        start_.trouble = Trouble::gone;
      } else if (theirs.size == 0 || theirs.size > most_processes) {
        start_.trouble = Trouble::version;
      } else {
        start_.size = theirs.size;
        start_.context = leads_ ? mine.context : theirs.context;
        start_.secret = talk_->shared();
        base::Text<sizeof start_.name> name;
        name << "junction-";
        name.hex(start_.context);
        memcpy(start_.name, name.c_str(), name.size() + 1);
      }
    }
  }
  if (!tell(&start_, sizeof start_)) return Trouble::no_memory;
  return start_.trouble;
}

// Everybody has its end of the junction, and the rows have crossed.
Trouble Meeting::introduce() {
  JunctionPlan plan;
  plan.size = own_size() + start_.size;
  plan.seat = uint32_t(local_->own.self) + (leads_ ? 0 : start_.size);
  memcpy(plan.secret, start_.secret.bytes, sizeof plan.secret);
  memcpy(plan.name, start_.name, sizeof plan.name);
  Row own;
  own.job = home_.job;
  own.rank = home_.rank;
  memcpy(own.job_name, home_.job_name, strnlen(home_.job_name, sizeof own.job_name - 1));
  {
    const waiting::Holding holding(home_.waiter.engine);
    Outcome opened = Outcome::ok;
    junction_ = junctions().open(plan, opened);
    if (junction_) (void)junction_->card(own.card, sizeof own.card);
  }
  base::Vec<Row> rows;
  Trouble trouble = Trouble::none;
  if ((is_root() && !rows.resize(own_size())) || !others_.resize(start_.size) ||
      !members_.resize(start_.size)) {
    trouble = Trouble::no_memory;
  }
  // Who has no memory for the rows says so in one step with the others.
  if (const Trouble all = agree(trouble); all != Trouble::none) return all;
  if (!collect(&own, sizeof own, rows.data())) trouble = Trouble::no_memory;
  if (is_root() &&
      !swap(rows.data(), rows.size() * sizeof(Row), others_.data(), others_.size() * sizeof(Row))) {
    trouble = Trouble::gone;
  }
  if (!tell(&trouble, sizeof trouble)) return Trouble::no_memory;
  if (trouble != Trouble::none) return trouble;
  return tell(others_.data(), others_.size() * sizeof(Row)) ? Trouble::none : Trouble::no_memory;
}

// Whether the context is one that its maker may give.
bool Meeting::is_context_theirs() const {
  if (leads_) return true;
  if (!objects::is_context(start_.context)) return false;
  for (const Row& row : others_) {
    if (row.job == objects::context_job(start_.context)) return true;
  }
  return false;
}

// The others get their numbers here.
Trouble Meeting::take_in() {
  if (!junction_) return Trouble::no_socket;
  if (!is_context_theirs()) return Trouble::version;
  bool all_at_home = true;
  for (Row& row : others_) {
    row.job_name[sizeof row.job_name - 1] = row.card[sizeof row.card - 1] = '\0';
    const bool at_home = strcmp(row.job_name, home_.job_name) == 0;
    all_at_home = all_at_home && at_home;
    if (at_home && row.rank >= uint32_t(home_.registry.everyone->own.size)) return Trouble::version;
    if (at_home) {
      for (int i = 0; i < local_->own.size; ++i) {
        if (local_->own.process(i) == row.rank) return Trouble::shared;
      }
      continue;
    }
    if (row.job == home_.job || junctions().clashes(row.job, row.job_name)) return Trouble::clash;
    if (!*row.card) return Trouble::no_socket;
  }
  const waiting::Holding holding(home_.waiter.engine);
  const uint32_t first_seat = leads_ ? own_size() : 0;
  switch (
      junction_->meet(others_.data(), start_.size, first_seat, home_.job_name, members_.data())) {
    case Outcome::ok: break;
    case Outcome::no_memory:
    case Outcome::no_resource: return Trouble::no_memory;
    default: return Trouble::version;
  }
  if (all_at_home) {
    junctions().close(*junction_);
    junction_ = nullptr;
  }
  return Trouble::none;
}

// All ranks of both sides hear whether all are well; else of one that is not.
Trouble Meeting::agree(Trouble own) {
  base::Vec<uint8_t> all;
  uint8_t mine = uint8_t(own), worst = mine;
  if (is_root() && !all.resize(own_size())) mine = worst = uint8_t(Trouble::no_memory);
  const bool can_collect = !is_root() || !all.empty();
  if (own_size() > 1 && (!can_collect || !collect(&mine, 1, all.data()))) {
    worst = uint8_t(Trouble::no_memory);
  }
  for (const uint8_t one : all) worst = one > worst ? one : worst;
  if (is_root()) {
    worst = mine > worst ? mine : worst;
    uint8_t theirs = 0;
    if (!swap(&worst, 1, &theirs, 1)) theirs = uint8_t(Trouble::gone);
    theirs = uint8_t(read_trouble(theirs));
    worst = theirs > worst ? theirs : worst;
  }
  return tell(&worst, 1) ? Trouble(worst) : Trouble::no_memory;
}

Trouble Meeting::adopt(objects::Errhandler* handler, objects::Comm*& made) {
  objects::Group* remote = objects::Group::make(int(start_.size));
  if (!remote) return Trouble::no_memory;
  memcpy(remote->members, members_.data(), start_.size * sizeof(uint32_t));
  made = objects::make_comm(start_.context, local_->group, handler);
  if (made) {
    objects::bridge(*made, remote, leads_);
    made->handle = home_.registry.comms.add(made);
    if (!made->handle) {
      objects::release(made);
      made = nullptr;
    }
  }
  remote->release();
  return made ? Trouble::none : Trouble::no_memory;
}

// An empty message to and from the rank of the other side that this one watches, or from all that
// watch this one: the smaller side has several.
Outcome Meeting::touch(objects::Comm* comm) {
  protocols::Engine& engine = home_.waiter.engine;
  const waiting::Holding holding(engine);
  const int own = comm->own.size, others = comm->others.size, self = comm->own.self;
  const int step = own >= others ? others : own;
  Outcome outcome = Outcome::ok;
  base::Vec<protocols::Request*> begun;
  for (int other = self % step; other < others; other += step) {
    const p2p::Address address{comm, other, 0};
    const UserMemory nothing(nullptr, 0);
    protocols::Request* coming = p2p::make_receive(engine, nothing, address);
    protocols::Request* leaving = p2p::make_send(engine, nothing, address, p2p::Mode::standard);
    if (!coming || !leaving || !begun.reserve(begun.size() + 2)) {
      if (coming) engine.give_request(coming);
      if (leaving) engine.give_request(leaving);
      outcome = Outcome::no_memory;
      break;
    }
    (void)begun.push(coming);
    (void)begun.push(leaving);
    coming->key.context ^= first_apart;
    leaving->key.context ^= first_apart;
    engine.start_receive(coming);
    engine.start_send(leaving);
  }
  for (protocols::Request* one : begun) {
    home_.waiter.request(one);
    engine.give_request(one);
  }
  return outcome;
}

Trouble Meeting::run(Trouble own, objects::Errhandler* handler, objects::Comm*& made) {
  made = nullptr;
  Trouble trouble = begin(own);
  if (trouble != Trouble::none) return trouble;
  trouble = introduce();
  if (trouble == Trouble::none) {
    trouble = take_in();
    if (trouble == Trouble::none) trouble = adopt(handler, made);
    trouble = agree(trouble);
  }
  if (trouble == Trouble::none && touch(made) != Outcome::ok) trouble = Trouble::no_memory;
  if (trouble == Trouble::none) {
    const waiting::Holding holding(home_.waiter.engine);
    if (junction_) junction_->settle();
    return trouble;
  }
  if (made) {
    home_.registry.comms.remove(made->handle);
    objects::release(made);
    made = nullptr;
  }
  if (junction_) {
    const waiting::Holding holding(home_.waiter.engine);
    junctions().close(*junction_);
  }
  return trouble;
}

}  // namespace

Trouble meet(const Home& home, objects::Comm* local, int root, Talk* talk, Trouble own, bool leads,
             objects::Errhandler* handler, objects::Comm*& made) {
  return Meeting(home, local, root, talk, leads).run(own, handler, made);
}

}  // namespace headway::spawn
