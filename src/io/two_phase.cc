#include "io/two_phase.h"

#include <new>

#include "base/check.h"
#include "base/heap.h"
#include "collectives/collectives.h"
#include "io/counters.h"
#include "waiting/holding.h"

namespace headway::io {
namespace {

const datatypes::Type* int64_type() {
  return &datatypes::predefined(datatypes::BasicType::int64_t);
}

// How many nodes a communicator has; 1 where they do not lie evenly.
int nodes_of(protocols::Engine& engine, objects::Comm* comm) {
  (void)collectives::sharing_of(engine, comm);
  const int each = int(comm->ranks_a_node.load(std::memory_order_relaxed));
  return each > 0 ? comm->own.size / each : 1;
}

}  // namespace

Part TwoPhase::part_of(const Operation& of) {
  const bool alone =
      of.file().atomic.load(std::memory_order_relaxed) || of.view().representation().converts();
  return io::part_of(of.view(), of.at(), of.bytes(), of.file().hints, of.writes(), alone);
}

void TwoPhase::start(Operation& of, const Part& part) {
  void* memory = base::heap_allocate(sizeof(TwoPhase));
  if (!memory) {
    end_job(of);
    of.failure_ = {.error = ENOMEM, .act = of.writes() ? "write" : "read"};
    of.end();
    return;
  }
  of.phases_ = new (memory) TwoPhase(of);
  of.phases_->begin(part);
}

// The others wait for what this rank has no memory for, and would wait for ever if it returned: its
// program goes on after an error. So the job ends, and says why.
void TwoPhase::end_job(Operation& of) {
  const objects::Team team = of.file().comm->own;
  if (team.size == 1) return;
  of.engine_->links().lost(uint32_t(team.process(team.self == 0 ? 1 : 0)), Outcome::no_memory,
                           "a collective access to a file has no room for what it gathers, and "
                           "the other ranks wait for it (hint cb_buffer_size makes it smaller)");
}

void TwoPhase::destroy() {
  op_.phases_ = nullptr;
  this->~TwoPhase();
  base::heap_free(this, sizeof *this);
}

void TwoPhase::fail(Outcome outcome) {
  if (outcome == Outcome::no_memory) end_job(op_);
  note({.error = outcome == Outcome::no_memory ? ENOMEM : peer_failed,
        .act = op_.writes() ? "write" : "read"});
  Operation& operation = op_;
  destroy();
  operation.end();
}

// How a schedule has ended, which goes with its request.
Outcome TwoPhase::take_end(Request* request) {
  const Outcome outcome = request->outcome;
  op_.engine_->give_request(request);
  return outcome;
}

void TwoPhase::go_alone() {
  Operation& operation = op_;
  destroy();
  operation.give(Operation::run_job, [](Operation& of) { of.end(); });
}

void TwoPhase::end() {
  Operation& operation = op_;
  if (operation.writes()) {
    if (!operation.failure_) operation.moved_ = operation.data().bytes();
  } else {
    const int64_t end = own_end_ < end_ ? own_end_ : end_;
    // Where a stretch could not be read, nobody knows how much of what is before it there is.
    uint64_t there = operation.failure_ ? 0 : operation.bytes();
    if (there && end != INT64_MAX) {
      const uint64_t below = operation.view().bytes_below(end);
      const uint64_t ours = below > operation.at() ? below - operation.at() : 0;
      if (ours < there) there = ours;
    }
    operation.moved_ = there;
  }
  destroy();
  operation.end();
}

// The parts of all. Collective calls begin in one order on all ranks, and so do their tags; what
// follows may cross with what another one of this file does.
void TwoPhase::begin(const Part& part) {
  File& file = op_.file();
  for (int& tag : tags_) tag = Schedule::next_tag(file.comm);
  (void)Schedule::next_tag(file.comm);  // the rounds' second lane
  count(counters.collectives);
  if (ranks() == 1 && file.hints.collective_buffering != Hints::Wish::always) {
    go_alone();
    return;
  }
  if (!parts_.resize(size_t(ranks()))) return fail(Outcome::no_memory);
  parts_[size_t(self())] = part;
  const auto blocks = collectives::Blocks::even(parts_.data(), part_words, int64_type());
  Schedule* schedule =
      collectives::allgather({*op_.engine_, file.comm, collectives::nothing_forced}, {}, blocks);
  if (!schedule || !schedule->start_inside(tags_[0], parts_known, this)) fail(Outcome::no_memory);
}

void TwoPhase::parts_known(Request* request) {
  auto& self = *static_cast<TwoPhase*>(Schedule::of(request).part_of);
  const Outcome outcome = self.take_end(request);
  if (outcome != Outcome::ok) return self.fail(outcome);
  self.decide();
}

void TwoPhase::decide() {
  if (!Plan::agree(parts_.data(), ranks())) {
    note({.error = not_the_same, .act = op_.writes() ? "write" : "read"});
    return end();
  }
  plan_.decide(parts_.data(), ranks(), nodes_of(*op_.engine_, op_.file().comm));
  if (!plan_.has_two_phases()) return go_alone();
  count(counters.two_phase);
  owner_ = plan_.owner_of(self());
  if (!sum_up()) return fail(Outcome::no_memory);
  tell_amounts();
}

// What this rank has for each owner in each round.
bool TwoPhase::sum_up() {
  const uint64_t rounds = plan_.rounds(), owners = plan_.owners();
  if (!cut(plan_, op_.view(), op_.at(), op_.bytes(), slices_) || !own_.resize(owners * rounds) ||
      !results_.resize(owners) || !out_.resize(owners) || !back_.resize(owners) ||
      !latest_.resize(owners)) {
    return false;
  }
  for (const Slice& slice : slices_) {
    own(plan_.owner_at(slice.stretch), plan_.round_at(slice.stretch)) = {slice.runs, slice.bytes};
  }
  if (!is_owner()) return true;
  const auto all = size_t(ranks());
  return theirs_.resize(all * rounds) && in_.resize(all) && answers_.resize(all) &&
         answered_.resize(2 * all) && scratch_.reserve(plan_.stretch());
}

void TwoPhase::tell_amounts() {
  Schedule* schedule = Schedule::make(*op_.engine_, op_.file().comm, collectives::Kind::alltoallv);
  if (!schedule) return fail(Outcome::no_memory);
  const uint64_t bytes = plan_.rounds() * sizeof(Amount);
  for (int rank = 0; is_owner() && rank < ranks(); ++rank) {
    if (rank == self() || parts_[size_t(rank)].bytes == 0) continue;
    schedule->receive(team(), rank, UserMemory(&theirs(rank, 0), bytes));
  }
  for (uint64_t owner = 0; op_.bytes() && owner < plan_.owners(); ++owner) {
    if (owner == owner_) continue;
    schedule->send(team(), plan_.rank_of(owner), UserMemory(&own(owner, 0), bytes));
  }
  if (!schedule->start_inside(tags_[1], amounts_known, this)) fail(Outcome::no_memory);
}

void TwoPhase::amounts_known(Request* request) {
  auto& self = *static_cast<TwoPhase*>(Schedule::of(request).part_of);
  const Outcome outcome = self.take_end(request);
  if (outcome != Outcome::ok) return self.fail(outcome);
  self.next_rounds();
}

const Slice* TwoPhase::find_slice(uint64_t stretch) const {
  size_t low = 0, high = slices_.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (slices_[middle].stretch < stretch) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < slices_.size() && slices_[low].stretch == stretch ? &slices_[low] : nullptr;
}

}  // namespace headway::io
