// An owner's rounds of a two-phase access: without the engine, by whoever waits for the disk.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "io/counters.h"
#include "io/two_phase.h"

namespace headway::io {

void TwoPhase::run_round(Operation& of) {
  TwoPhase& self = *of.phases_;
  const uint64_t stretch = self.plan_.stretch_of(self.owner_, self.job_round_);
  const int64_t start = self.plan_.start_of(stretch);
  count(counters.stretches);
  if (!self.result_.error && !self.check_messages()) self.result_ = {peer_failed, no_place};
  if (of.writes()) {
    self.write_round(start);
  } else {
    self.read_round(start);
  }
}

void TwoPhase::round_over(Operation& of) {
  TwoPhase& self = *of.phases_;
  self.schedule_->end_act(self.job_step_);  // may end the operation
}

// Calls visit(rank, runs, count, data) for what has come for this round from each other rank: the
// list of its runs, and behind that its data, if it writes.
template <class Visit>
void TwoPhase::each_message(Visit&& visit) {
  for (int rank = 0; rank < ranks(); ++rank) {
    const Amount& amount = theirs(rank, job_round_);
    if (rank == self() || amount.bytes == 0) continue;
    const char* const message = in_[size_t(rank)].of(job_round_);
    visit(rank, reinterpret_cast<const Run*>(message), amount.runs, message + list_bytes(amount));
  }
}

// What others say is not believed: no byte may go to the file, or beyond the stretch, that nobody
// has asked for.
bool TwoPhase::check_messages() {
  bool good = true;
  each_message([&](int rank, const Run* runs, uint32_t number, const char*) {
    uint64_t bytes = 0, end = 0;
    for (uint32_t i = 0; i < number; ++i) {
      good = good && runs[i].bytes != 0 && runs[i].at >= end;
      end = uint64_t(runs[i].at) + runs[i].bytes;
      bytes += runs[i].bytes;
    }
    good = good && end <= plan_.stretch() && bytes == theirs(rank, job_round_).bytes;
  });
  return good;
}

void TwoPhase::write_round(int64_t start) {
  if (result_.error) return;  // it is told already that not all is written
  op_.file().written.store(true, std::memory_order_relaxed);
  runs_.clear();
  char* const scratch = scratch_.data();
  each_message([&](int, const Run* runs, uint32_t number, const char* data) {
    for (uint32_t i = 0; i < number; ++i) {
      memcpy(scratch + runs[i].at, data, runs[i].bytes);
      data += runs[i].bytes;
      (void)runs_.push(runs[i]);  // room was made for all
    }
  });
  if (const Slice* slice = find_slice(plan_.stretch_of(owner_, job_round_))) {
    const UserMemory memory = op_.data().memory();
    uint64_t from = slice->from;
    const auto gather = [&](int64_t place, uint64_t bytes) {
      memory.read(from, scratch + (place - start), size_t(bytes));
      from += bytes;
      (void)runs_.push({uint32_t(place - start), uint32_t(bytes)});
      return true;
    };
    (void)op_.view().for_each_run(op_.at() + slice->from, slice->bytes, gather);
  }
  write_runs(start);
}

// What touches or overlaps goes out in one call; holes stay as they are.
void TwoPhase::write_runs(int64_t start) {
  const auto by_place = [](const Run& a, const Run& b) { return a.at < b.at; };
  std::sort(runs_.begin(), runs_.end(), by_place);
  for (size_t first = 0; first < runs_.size();) {
    const uint64_t low = runs_[first].at;
    uint64_t high = low;
    for (; first < runs_.size() && runs_[first].at <= high; ++first) {
      const uint64_t end = uint64_t(runs_[first].at) + runs_[first].bytes;
      if (end > high) high = end;
    }
    const Failure failed =
        op_.file().disk.write(start + int64_t(low), scratch_.data() + low, high - low);
    if (!failed) continue;
    result_ = {failed.error, failed.offset};
    return;
  }
}

void TwoPhase::answer(int rank, const Found& found) {
  memcpy(answers_[size_t(rank)].of(job_round_), &found, sizeof found);
}

void TwoPhase::read_round(int64_t start) {
  if (result_.error) {
    const Found none{INT64_MAX, result_.error, result_.offset};
    each_message([&](int rank, const Run*, uint32_t, const char*) { answer(rank, none); });
    return;
  }
  uint64_t low = plan_.stretch(), high = 0;
  const auto widen = [&](uint64_t at, uint64_t bytes) {
    if (at < low) low = at;
    if (at + bytes > high) high = at + bytes;
  };
  // A list is in the order of the file.
  each_message([&](int, const Run* runs, uint32_t number, const char*) {
    widen(runs[0].at, runs[0].bytes);
    widen(runs[number - 1].at, runs[number - 1].bytes);
  });
  const Slice* const slice = find_slice(plan_.stretch_of(owner_, job_round_));
  const auto each_own = [&](auto&& visit) {
    if (slice) (void)op_.view().for_each_run(op_.at() + slice->from, slice->bytes, visit);
  };
  each_own([&](int64_t place, uint64_t bytes) {
    widen(uint64_t(place - start), bytes);
    return true;
  });
  HEADWAY_CHECK(low < high && high <= plan_.stretch());
  char* const scratch = scratch_.data();
  uint64_t got = 0;
  const Failure failed = op_.file().disk.read(start + int64_t(low), scratch + low, high - low, got);
  if (failed) result_ = {failed.error, failed.offset};
  // What lies behind the end of the file is not given to the program, but travels.
  memset(scratch + low + got, 0, size_t(high - low - got));
  const int64_t end = got < high - low ? start + int64_t(low + got) : INT64_MAX;
  const Found found{end, failed.error, failed.offset};
  each_message([&](int rank, const Run* runs, uint32_t number, const char*) {
    answer(rank, found);
    char* data = answers_[size_t(rank)].of(job_round_) + sizeof found;
    for (uint32_t i = 0; i < number; ++i) {
      memcpy(data, scratch + runs[i].at, runs[i].bytes);
      data += runs[i].bytes;
      count(counters.passed_bytes, runs[i].bytes);
    }
  });
  if (failed || !slice) return;
  if (end < own_end_) own_end_ = end;
  const UserMemory memory = op_.data().memory();
  uint64_t to = slice->from;
  each_own([&](int64_t place, uint64_t bytes) {
    const uint64_t there = place < end ? uint64_t(end - place) : 0;
    memory.write(to, scratch + (place - start), size_t(there < bytes ? there : bytes));
    to += bytes;
    return true;
  });
}

}  // namespace headway::io
