#include "spawn/part.h"

#include "base/vec.h"
#include "spawn/junction.h"
#include "waiting/holding.h"
#include "waiting/waiter.h"

namespace headway::spawn {
namespace {

using protocols::UserMemory;

// An acknowledgement of the network rings no bell.
constexpr int look_again_ms = 1;
// Whether one has left MPI rings none, either.
constexpr int left_ms = 20;

// All ranks of a communicator have come to the same point: those of each job among themselves, and
// then each with one of every other job, or several where that is the larger one. Who has left MPI
// meanwhile is not waited for: it has nothing more to say.
class Parting {
 public:
  Parting(const Home& home, objects::Comm* comm) : home_(home), comm_(comm) {}
  Outcome run();

 private:
  // One of the communicator. `place`: the same in all processes.
  struct Member {
    uint32_t process;
    uint32_t job;
    int32_t place;
  };
  struct Exchange {
    protocols::Request* send;
    protocols::Request* receive;
  };
  bool list();
  bool list_job(uint32_t job, base::Vec<Member>& of_it) const;
  Outcome begin(const Member& to, const Member& from, int tag);
  Outcome begin_with_others(uint32_t own_job, uint32_t place, uint32_t own_count);
  void end_all();

  const Home& home_;
  objects::Comm* comm_;
  base::Vec<Member> all_;
  uint32_t self_ = 0;  // in all_
  base::Vec<Exchange> begun_;
};

// Tags of messages in the context of collectives, whose own are not below zero.
constexpr int own_job_tag = -2000, other_job_tag = -3000;

bool Parting::list() {
  const protocols::Peers& peers = home_.waiter.engine.links().peers();
  const bool own_first = !comm_->is_inter() || comm_->leads;
  const objects::Team sides[] = {own_first ? comm_->own : comm_->others,
                                 own_first ? comm_->others : comm_->own};
  const int count = comm_->is_inter() ? 2 : 1;
  const uint32_t self = comm_->own.process(comm_->own.self);
  for (int side = 0; side < count; ++side) {
    for (int rank = 0; rank < sides[side].size; ++rank) {
      const uint32_t process = sides[side].process(rank);
      const auto place = int32_t(all_.size());
      if (process == self) self_ = uint32_t(place);
      const auto job = uint32_t(peers.identity_of(process) >> 32);
      if (!all_.push({process, job, place})) return false;
    }
  }
  return true;
}

bool Parting::list_job(uint32_t job, base::Vec<Member>& of_it) const {
  for (const Member& one : all_) {
    if (one.job == job && !of_it.push(one)) return false;
  }
  return true;
}

// `to` and `from`: of this job, or the same one of another, which may have left.
Outcome Parting::begin(const Member& to, const Member& from, int tag) {
  protocols::Engine& engine = home_.waiter.engine;
  protocols::Peer* next = engine.peer(to.process);
  protocols::Peer* previous = engine.peer(from.process);
  if (next && next->left) return Outcome::ok;
  const Exchange made{engine.take_request(), engine.take_request()};
  if (!next || !previous || !made.send || !made.receive || !begun_.push(made)) {
    for (protocols::Request* one : {made.send, made.receive}) {
      if (one) engine.give_request(one);
    }
    return Outcome::no_memory;
  }
  made.send->kind = protocols::RequestKind::send;
  made.receive->kind = protocols::RequestKind::receive;
  made.send->key = {comm_->collective_context(), int32_t(self_), tag};
  made.receive->key = {comm_->collective_context(), from.place, tag};
  made.send->peer = next;
  made.receive->peer = previous;
  for (protocols::Request* one : {made.receive, made.send}) {
    one->held_by_user = true;
    one->memory = UserMemory(nullptr, 0);
  }
  engine.start_receive(made.receive);
  engine.start_send(made.send);
  return Outcome::ok;
}

void Parting::end_all() {
  protocols::Engine& engine = home_.waiter.engine;
  const auto is_over = [](const protocols::Request& one) {
    return one.done.load(std::memory_order_relaxed) != protocols::Done::no;
  };
  for (const Exchange& exchange : begun_) {
    for (protocols::Request* one : {exchange.receive, exchange.send}) {
      home_.waiter.until([&] { return is_over(*one) || one->peer->left; }, one->peer, left_ms);
      if (!is_over(*one)) engine.cancel(one);
      if (is_over(*one)) {
        engine.give_request(one);
      } else {
        one->held_by_user = false;  // its end, whenever that is, gives it back
      }
    }
  }
  begun_.clear();
}

Outcome Parting::begin_with_others(uint32_t own_job, uint32_t place, uint32_t own_count) {
  for (const Member& first : all_) {
    base::Vec<Member> others;
    if (first.job == own_job) continue;
    if (first.place > 0 && all_[size_t(first.place) - 1].job == first.job) continue;
    if (!list_job(first.job, others)) return Outcome::no_memory;
    if (others[0].place != first.place) continue;  // that job was seen to
    const auto count = uint32_t(others.size());
    const uint32_t step = own_count < count ? own_count : count;
    for (uint32_t i = place % step; i < count; i += step) {
      const Outcome begun = begin(others[i], others[i], other_job_tag);
      if (begun != Outcome::ok) return begun;
    }
  }
  return Outcome::ok;
}

Outcome Parting::run() {
  const waiting::Holding holding(home_.waiter.engine);
  base::Vec<Member> own;
  if (!list() || !list_job(all_[self_].job, own)) return Outcome::no_memory;
  uint32_t place = 0;
  while (own[place].place != int32_t(self_)) ++place;
  const auto own_count = uint32_t(own.size());
  for (uint32_t distance = 1; distance < own_count; distance *= 2) {
    const Member& next = own[(place + distance) % own_count];
    const Member& previous = own[(place + own_count - distance) % own_count];
    const int tag = own_job_tag - int(distance);
    const Outcome begun = begin(next, previous, tag);
    end_all();
    if (begun != Outcome::ok) return begun;
  }
  const Outcome begun = begin_with_others(own[0].job, place, own_count);
  end_all();
  return begun;
}

}  // namespace

Outcome part(const Home& home, objects::Comm* comm) { return Parting(home, comm).run(); }

void close_unused(const Home& home) {
  if (!junctions().any()) return;
  const waiting::Holding holding(home.waiter.engine);
  while (Junction* junction = junctions().unused(home.registry)) {
    junction->say_goodbye();
    home.waiter.until([&] { return junction->is_delivered(); }, nullptr, look_again_ms);
    junctions().close(*junction);
  }
}

}  // namespace headway::spawn
