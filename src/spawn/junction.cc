#include "spawn/junction.h"

#include <cstring>
#include <new>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/check.h"
#include "base/descriptors.h"
#include "base/heap.h"
#include "objects/registry.h"

namespace headway::spawn {

using protocols::Peers;

namespace {

// Never torn down: the message thread may still be inside when the program ends.
alignas(Junctions) char memory_of_all[sizeof(Junctions)];
bool made = false;

bool leads_to(const Junction& junction, const objects::Comm& comm) {
  for (int i = 0; i < comm.own.size; ++i) {
    if (junction.has(comm.own.process(i))) return true;
  }
  for (int i = 0; i < comm.others.size; ++i) {
    if (junction.has(comm.others.process(i))) return true;
  }
  return false;
}

}  // namespace

Junctions& junctions() {
  if (!made) {
    new (memory_of_all) Junctions;
    made = true;
  }
  return *std::launder(reinterpret_cast<Junctions*>(memory_of_all));
}

// --- one ---

Outcome Junction::open(const tcp::Config& config, const JunctionPlan& plan, protocols::Core& core,
                       transports::Receiver& receiver) {
  core_ = &core;
  receiver_ = &receiver;
  memcpy(name_, plan.name, sizeof name_);
  tcp::Config own = config;
  own.rank = plan.seat;
  own.size = plan.size;
  own.job = name_;
  own.whom = "seat ";  // both have ranks of the same numbers
  memcpy(own.secret, plan.secret, sizeof own.secret);
  numbers_.clear();
  behind_.clear();
  first_ = away_ = 0;
  settled_ = kept_ = false;
  if (!numbers_.resize(plan.size)) return Outcome::no_memory;
  for (uint32_t& number : numbers_) number = Peers::nobody;
  const Outcome started = tcp_.start(own, this);
  open_ = started == Outcome::ok;
  return started;
}

Outcome Junction::meet(const Row* rows, uint32_t count, uint32_t first_seat, const char* own_job,
                       uint32_t* members) {
  Peers& peers = core_->links().peers();
  base::Vec<uint64_t> away;
  for (uint32_t i = 0; i < count; ++i) {
    if (strcmp(rows[i].job_name, own_job) == 0) continue;
    if (!away.push(Peers::identity(rows[i].job, rows[i].rank))) return Outcome::no_memory;
  }
  if (away.empty()) first_ = peers.processes();
  if (!behind_.reserve(away.size())) return Outcome::no_memory;
  if (!away.empty()) {
    const Outcome added = peers.add_others(away.data(), uint32_t(away.size()), first_);
    if (added != Outcome::ok) return added;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const Row& row = rows[i];
    if (strcmp(row.job_name, own_job) == 0) {
      members[i] = row.rank;
      continue;
    }
    const uint32_t number = first_ + away_, seat = first_seat + i;
    protocols::Peer* peer = peers.get(number);
    if (!peer) return Outcome::no_memory;
    if (const Outcome set = tcp_.set_card(seat, row.card); set != Outcome::ok) return set;
    peer->rank = row.rank;
    peer->number = seat;
    peer->transport = &tcp_;
    // Nothing is asked for before its send: what is kept for that outlives a junction.
    peer->caps = tcp_.caps() & ~uint32_t(transports::early);
    (void)behind_.push({seat, row});
    numbers_[seat] = members[i] = number;
    ++away_;
  }
  tcp_.all_cards_set();
  return Outcome::ok;
}

const Row* Junction::row_of(uint32_t process) const {
  return has(process) ? &behind_[process - first_].row : nullptr;
}

bool Junction::clashes(uint32_t job, const char* name) const {
  for (const Behind& one : behind_) {
    if (one.row.job == job && strcmp(one.row.job_name, name) != 0) return true;
  }
  return false;
}

void Junction::close() {
  HEADWAY_CHECK(open_);
  for (uint32_t i = 0; i < away_; ++i) {
    if (protocols::Peer* peer = core_->find_peer(first_ + i)) {
      peer->left = true;
      core_->links().drop_controls(*peer);
    }
  }
  tcp_.finish();
  open_ = false;
  away_ = 0;
}

bool Junction::frame(uint32_t seat, const FrameHeader& header, const char* body) {
  const uint32_t process = process_on(seat);
  return process != Peers::nobody && receiver_->frame(process, header, body);
}

bool Junction::begin(uint32_t seat, const FrameHeader& header, Landing& landing) {
  const uint32_t process = process_on(seat);
  return process != Peers::nobody && receiver_->begin(process, header, landing);
}

void Junction::landed(uint32_t seat, const FrameHeader& header, const Landing& landing,
                      uint64_t arrived) {
  receiver_->landed(process_on(seat), header, landing, arrived);
}

void Junction::end(uint32_t seat, const FrameHeader& header, const Landing& landing) {
  receiver_->end(process_on(seat), header, landing);
}

bool Junction::make_writable(const char* from, size_t n) {
  return receiver_->make_writable(from, n);
}

void Junction::sent(uint32_t seat, uint64_t cookie) { receiver_->sent(process_on(seat), cookie); }

void Junction::unsent(int by) { receiver_->unsent(by); }

bool Junction::needs(uint32_t seat) {
  const uint32_t process = process_on(seat);
  return process != Peers::nobody && receiver_->needs(process);
}

void Junction::left(uint32_t seat) {
  if (const uint32_t process = process_on(seat); process != Peers::nobody) receiver_->left(process);
}

void Junction::lost(uint32_t seat, Outcome why, const char* story) {
  const Row* row = row_of(process_on(seat));
  if (row) junctions().lost(why, *row, story);
}

const char* Junction::kind_name(uint8_t kind) const { return receiver_->kind_name(kind); }

// --- all ---

void Junctions::prepare(protocols::Core& core, transports::Receiver& receiver,
                        const tcp::Config& config, LostHandler lost) {
  core_ = &core;
  receiver_ = &receiver;
  config_ = config;
  lost_ = lost;
}

// With the first junction: a job that meets no other has nothing to look at.
bool Junctions::start() {
  if (epoll_ >= 0) return true;
  epoll_ = base::with_room([] { return epoll_create1(EPOLL_CLOEXEC); });
  if (epoll_ < 0) return false;
  if (core_->handoff().watch(epoll_) != Outcome::ok) {
    ::close(epoll_);
    epoll_ = -1;
    return false;
  }
  core_->links().look_at(*this);
  return true;
}

bool Junctions::watch(int fd, uint32_t events) {
  if (!start()) return false;
  epoll_event event{};
  event.events = events;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Junctions::unwatch(int fd) {
  if (epoll_ >= 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

Junction* Junctions::open(const JunctionPlan& plan, Outcome& outcome) {
  outcome = Outcome::no_resource;
  if (!start()) return nullptr;
  Junction* junction = first_;
  while (junction && junction->is_open()) junction = junction->next;
  if (!junction) {
    void* memory = base::heap_allocate(sizeof(Junction));
    outcome = Outcome::no_memory;
    if (!memory) return nullptr;
    junction = new (memory) Junction;
    junction->next = first_;
    first_ = junction;
  }
  outcome = junction->open(config_, plan, *core_, *receiver_);
  if (outcome != Outcome::ok) return nullptr;
  ++open_;
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, junction->transport().descriptor(), &event) == 0) {
    return junction;
  }
  close(*junction);
  outcome = Outcome::no_resource;
  return nullptr;
}

void Junctions::close(Junction& junction) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, junction.transport().descriptor(), nullptr);
  junction.close();
  --open_;
}

bool Junctions::is_crossed_by(const objects::Comm& comm) const {
  bool crossed = false;
  for_each([&](const Junction& junction) { crossed = crossed || leads_to(junction, comm); });
  return crossed;
}

void Junctions::keep_for(const objects::Comm& comm) {
  for_each([&](Junction& junction) {
    if (leads_to(junction, comm)) junction.keep();
  });
}

Junction* Junctions::unused(const objects::Registry& registry) const {
  Junction* found = nullptr;
  for_each([&](Junction& junction) {
    if (found || !junction.is_settled()) return;
    bool used = false;
    registry.comms.each([&](const void* object) {
      used = leads_to(junction, *static_cast<const objects::Comm*>(object));
      return !used;
    });
    if (!used) {
      registry.windows.each([&](const void* object) {
        used = leads_to(junction, *static_cast<const objects::Window*>(object)->comm);
        return !used;
      });
    }
    if (!used) found = &junction;
  });
  return found;
}

bool Junctions::clashes(uint32_t job, const char* name) const {
  bool clash = false;
  for_each([&](const Junction& junction) { clash = clash || junction.clashes(job, name); });
  return clash;
}

void Junctions::finish() {
  for_each([](Junction& junction) { junction.close(); });
  open_ = 0;
  if (epoll_ >= 0) ::close(epoll_);
  epoll_ = -1;
}

void Junctions::abandon() {
  for_each([](Junction& junction) { junction.abandon(); });
  if (epoll_ >= 0) ::close(epoll_);
  epoll_ = -1;
}

// Its peers are reached by the transports of the junctions themselves.
Outcome Junctions::connect(uint32_t, uint32_t&) { return Outcome::internal; }

Push Junctions::push(uint32_t, const FrameHeader&, const void*, uint32_t, const Feed*, uint64_t,
                     transports::Urgency) {
  HEADWAY_CHECK(false);
  return Push::full;
}

bool Junctions::reap(uint64_t budget) {
  bool moved = false;
  for_each([&](Junction& junction) { moved |= junction.transport().reap(budget); });
  return moved;
}

void Junctions::rest() {
  for_each([](Junction& junction) { junction.transport().rest(); });
}

void Junctions::wake() {
  for_each([](Junction& junction) { junction.transport().wake(); });
}

bool Junctions::is_delivered() const {
  bool all = true;
  for_each([&](const Junction& junction) { all = all && junction.is_delivered(); });
  return all;
}

}  // namespace headway::spawn
