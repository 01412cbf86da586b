// The rounds of a two-phase access as schedules of so many each: messages to and from the owners,
// and the owners' jobs.
#include <cstring>

#include "base/check.h"
#include "io/counters.h"
#include "io/two_phase.h"

namespace headway::io {
namespace {

using collectives::no_step;

constexpr uint64_t rounds_at_once = 64;  // the steps of a schedule take memory
constexpr uint8_t answers_lane = 1;      // what comes from owners passes what goes to them
constexpr uint64_t alignment = 16;

}  // namespace

uint64_t TwoPhase::last_round() const {
  const uint64_t left = plan_.rounds() - next_round_;
  return next_round_ + (left < rounds_at_once ? left : rounds_at_once);
}

// Rounds in which this rank has nothing are over as soon as they start: a loop, not a recursion.
void TwoPhase::next_rounds() {
  do {
    starting_ = true;
    rounds_over_ = false;
    if (!start_rounds()) return fail(Outcome::no_memory);
    starting_ = false;
  } while (rounds_over_ && end_rounds());
}

bool TwoPhase::start_rounds() {
  Schedule* schedule = Schedule::make(*op_.engine_, op_.file().comm, collectives::Kind::alltoallv);
  if (!schedule) return false;
  const uint64_t last = last_round();
  if (!make_room(*schedule, last)) {
    schedule->destroy();
    return false;
  }
  for (uint64_t round = next_round_; round < last; ++round) add_round(*schedule, round);
  if (op_.writes()) add_results(*schedule, last);
  schedule_ = schedule;
  return schedule->start_inside(tags_[2], rounds_over, this);
}

void TwoPhase::rounds_over(Request* request) {
  auto& self = *static_cast<TwoPhase*>(Schedule::of(request).part_of);
  self.rounds_outcome_ = self.take_end(request);
  self.schedule_ = nullptr;
  self.rounds_over_ = true;
  if (!self.starting_ && self.end_rounds()) self.next_rounds();
}

// Whether there are more. Else the operation is over, and this with it.
bool TwoPhase::end_rounds() {
  if (rounds_outcome_ != Outcome::ok) {
    fail(rounds_outcome_);
    return false;
  }
  note_results();
  next_round_ = last_round();
  if (next_round_ < plan_.rounds()) return true;
  end();
  return false;
}

bool TwoPhase::make_slots(Schedule& schedule, Slots& slots, uint64_t bytes) {
  slots = {nullptr, (bytes + alignment - 1) / alignment * alignment};
  if (bytes == 0) return true;
  slots.memory = schedule.scratch(slots.bytes, 2);
  return slots.memory != nullptr;
}

// For the longest message with each rank in these rounds.
bool TwoPhase::make_room(Schedule& schedule, uint64_t last) {
  for (StepId& job : jobs_) job = no_step;
  for (StepId& step : answered_) step = no_step;
  for (uint64_t owner = 0; owner < plan_.owners(); ++owner) {
    latest_[owner] = {no_step, no_step, {no_step, no_step}, {no_step, no_step}, 0};
    uint64_t there = 0, back = 0;
    for (uint64_t round = next_round_; owner != owner_ && round < last; ++round) {
      const Amount& amount = own(owner, round);
      if (amount.bytes == 0) continue;
      if (to_owner(amount) > there) there = to_owner(amount);
      if (!op_.writes() && from_owner(amount) > back) back = from_owner(amount);
    }
    if (!make_slots(schedule, out_[owner], there) || !make_slots(schedule, back_[owner], back))
      return false;
  }
  if (!is_owner()) return true;
  for (int rank = 0; rank < ranks(); ++rank) {
    uint64_t come = 0, go = 0;
    for (uint64_t round = next_round_; rank != self() && round < last; ++round) {
      const Amount& amount = theirs(rank, round);
      if (amount.bytes == 0) continue;
      if (to_owner(amount) > come) come = to_owner(amount);
      if (!op_.writes() && from_owner(amount) > go) go = from_owner(amount);
    }
    if (!make_slots(schedule, in_[size_t(rank)], come) ||
        !make_slots(schedule, answers_[size_t(rank)], go)) {
      return false;
    }
  }
  uint64_t most = 0;
  for (uint64_t round = next_round_; round < last; ++round) {
    uint64_t runs = own(owner_, round).runs;
    for (int rank = 0; rank < ranks(); ++rank) runs += theirs(rank, round).runs;
    if (runs > most) most = runs;
  }
  return runs_.reserve(size_t(most));
}

void TwoPhase::add_round(Schedule& schedule, uint64_t round) {
  if (is_owner()) add_owned(schedule, round);
  for (uint64_t owner = 0; owner < plan_.owners(); ++owner) {
    if (owner != owner_ && own(owner, round).bytes) add_own(schedule, owner, round);
  }
}

// This rank as an owner: what comes in, the job, the answers. A slot is used again when the job
// that reads it is over, or its answer has left.
void TwoPhase::add_owned(Schedule& schedule, uint64_t round) {
  const uint64_t turn = round & 1;
  const StepId job = schedule.act(do_round, round, jobs_[1 - turn]);
  for (int rank = 0; rank < ranks(); ++rank) {
    const Amount& amount = theirs(rank, round);
    if (rank == self() || amount.bytes == 0) continue;
    const UserMemory in(in_[size_t(rank)].of(turn), to_owner(amount));
    const StepId came = schedule.receive(team(), rank, in, jobs_[turn]);
    schedule.depends(job, came);
    if (op_.writes()) continue;
    StepId& answered = answered_[2 * size_t(rank) + turn];
    schedule.depends(job, answered);
    const UserMemory answer(answers_[size_t(rank)].of(turn), from_owner(amount));
    answered = schedule.send(team(), rank, answer, job);
    schedule.use_lane(answered, answers_lane);
  }
  jobs_[turn] = job;
}

// This rank's own data of a round, to or from another owner. Packing in order keeps the messages in
// order, too.
void TwoPhase::add_own(Schedule& schedule, uint64_t owner, uint64_t round) {
  const Amount& amount = own(owner, round);
  const int rank = plan_.rank_of(owner);
  Latest& latest = latest_[owner];
  const uint64_t turn = latest.turns++ & 1, word = word_of({owner, round, turn});
  latest.pack = schedule.act(pack, word, latest.pack);
  schedule.depends(latest.pack, latest.sent[turn]);
  const UserMemory out(out_[owner].of(turn), to_owner(amount));
  latest.sent[turn] = schedule.send(team(), rank, out, latest.pack);
  if (op_.writes()) return;
  const UserMemory back(back_[owner].of(turn), from_owner(amount));
  const StepId came = schedule.receive(team(), rank, back, latest.unpacked[turn]);
  schedule.use_lane(came, answers_lane);
  const StepId unpacked = schedule.act(unpack, word, came);
  schedule.depends(unpacked, latest.unpack);
  latest.unpack = latest.unpacked[turn] = unpacked;
}

// Whoever has sent data hears how its writing has ended, and leaves then: no barrier.
void TwoPhase::add_results(Schedule& schedule, uint64_t last) {
  const StepId over = jobs_[(last - 1) & 1];
  const auto any_of = [&](const auto& amount_in) {
    for (uint64_t round = next_round_; round < last; ++round) {
      if (amount_in(round).bytes) return true;
    }
    return false;
  };
  for (int rank = 0; is_owner() && rank < ranks(); ++rank) {
    const auto amount_in = [&](uint64_t round) { return theirs(rank, round); };
    if (rank == self() || !any_of(amount_in)) continue;
    const UserMemory result(&result_, sizeof result_);
    schedule.use_lane(schedule.send(team(), rank, result, over), answers_lane);
  }
  for (uint64_t owner = 0; owner < plan_.owners(); ++owner) {
    const auto amount_in = [&](uint64_t round) { return own(owner, round); };
    if (owner == owner_ || !any_of(amount_in)) continue;
    const UserMemory result(&results_[owner], sizeof(Result));
    schedule.use_lane(schedule.receive(team(), plan_.rank_of(owner), result), answers_lane);
  }
}

void TwoPhase::note_results() {
  const char* const act = op_.writes() ? "write" : "read";
  if (result_.error) note({.error = int(result_.error), .act = act, .offset = result_.offset});
  for (uint64_t owner = 0; owner < plan_.owners(); ++owner) {
    const Result& result = results_[owner];
    if (result.error == 0) continue;
    note({.error = int(result.error),
          .act = act,
          .offset = result.offset,
          .rank = plan_.rank_of(owner)});
  }
}

bool TwoPhase::pack(Schedule& schedule, StepId, uint64_t word) {
  auto& self = *static_cast<TwoPhase*>(schedule.part_of);
  const Operation& operation = self.op_;
  const What what = self.what_of(word);
  const uint64_t stretch = self.plan_.stretch_of(what.owner, what.round);
  const Slice* slice = self.find_slice(stretch);
  HEADWAY_CHECK(slice);
  const int64_t start = self.plan_.start_of(stretch);
  char* const message = self.out_[what.owner].of(what.turn);
  auto* run = reinterpret_cast<Run*>(message);
  const auto list = [&](int64_t place, uint64_t bytes) {
    *run++ = {uint32_t(place - start), uint32_t(bytes)};
    return true;
  };
  (void)operation.view().for_each_run(operation.at() + slice->from, slice->bytes, list);
  HEADWAY_CHECK(run == reinterpret_cast<Run*>(message) + slice->runs);
  if (operation.writes()) {
    char* const data = message + slice->runs * sizeof(Run);
    operation.data().memory().read(slice->from, data, slice->bytes);
  }
  count(counters.passed_bytes, slice->bytes);
  return true;
}

bool TwoPhase::unpack(Schedule& schedule, StepId, uint64_t word) {
  auto& self = *static_cast<TwoPhase*>(schedule.part_of);
  const Operation& operation = self.op_;
  const What what = self.what_of(word);
  const Slice* slice = self.find_slice(self.plan_.stretch_of(what.owner, what.round));
  HEADWAY_CHECK(slice);
  // An answer that has not come, or not as a whole, is none.
  if (schedule.outcome != Outcome::ok) return true;
  const char* data = self.back_[what.owner].of(what.turn);
  Found found;
  memcpy(&found, data, sizeof found);
  data += sizeof found;
  if (found.error) {
    self.results_[what.owner] = {found.error, found.offset};
    return true;
  }
  if (found.end < self.end_) self.end_ = found.end;
  const UserMemory memory = operation.data().memory();
  uint64_t to = slice->from;
  const auto take = [&](int64_t place, uint64_t bytes) {
    const uint64_t there = place < found.end ? uint64_t(found.end - place) : 0;
    memory.write(to, data, size_t(there < bytes ? there : bytes));
    to += bytes;
    data += bytes;
    return true;
  };
  (void)operation.view().for_each_run(operation.at() + slice->from, slice->bytes, take);
  return true;
}

bool TwoPhase::do_round(Schedule& schedule, StepId step, uint64_t round) {
  auto& self = *static_cast<TwoPhase*>(schedule.part_of);
  bool any = self.own(self.owner_, round).bytes != 0;
  for (int rank = 0; !any && rank < self.ranks(); ++rank) any = self.theirs(rank, round).bytes != 0;
  if (!any) return true;
  self.job_step_ = step;
  self.job_round_ = round;
  // What has come, or has not, is garbage from here on.
  if (schedule.outcome != Outcome::ok && !self.result_.error)
    self.result_ = {peer_failed, no_place};
  self.op_.give(run_round, round_over);
  return false;
}

}  // namespace headway::io
