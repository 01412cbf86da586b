// Patrol: tells whether a rank that leaves MPI with work pending will be back at once. One that was
// never away for long, many times in a row, is not guarded by the doorbell: to arm it costs a tenth
// of a microsecond each time, and who rings it wakes a thread that finds nothing to do, on the core
// of a rank that is back. Instead the message thread looks now and then whether the rank is still
// away, and takes over if it is. A clock costs as much as half a call: it is read where the rank
// leaves with nothing on its account, and where it waits. Calls between the two count as ends of
// absences, and the mean is judged. Thread: holder of the engine. Owner: the handoff.
// One that lasted a little longer was mostly no absence: whoever was woken here had the core, and
// often it was our own thread that was rung for. It costs a part of what was earned, so a few of
// them do no harm and a rank that often stays so long earns nothing. A rank that goes away for long
// soon after it has earned the patrol has to be back more often the next time, or each of its
// computations would begin with the wait for a look.
// Invariant: an absence without a call in it that is long ends it.
#pragma once
#include <cstdint>

#include "base/clock.h"

namespace headway::progress {

class Patrol {
 public:
  // How long a rank that is on its way from one call to the next stays away at most. Copies that
  // lie begun wait as long for it (Engine::hand_on).
  static constexpr uint64_t short_ns = 20'000;
  // As often as this: a long absence, by far.
  static constexpr uint32_t long_times = 10;
  // So many that were a little longer take what was earned.
  static constexpr uint32_t most_slips = 16;
  // Soon: within so many times the short absences that had earned it. As often as that at most is
  // needed what is enough at first.
  static constexpr uint32_t soon_times = 16, dearest_times = 64;
  static constexpr uint32_t look_every = 32;

  // After `enough` short absences, at first; 0: never.
  void start(uint32_t enough) {
    first_enough_ = enough_ = enough;
    began_ns_ = base::now_ns();
    began_ = base::ticks();
  }
  // It leaves MPI with work pending, perhaps after a call for a moment. Of one that never begins no
  // absence is judged.
  void leaves() {
    came_ = 0;  // of a call for a moment
    if (!away_ && enough_ != 0) begin_absence();
    ++leaves_;
  }
  // It leaves once more in a row of calls for a moment. False, and nothing is noted: the absence
  // is to be looked at, or a look at what has come is due.
  bool leaves_again() {
    if (!away_ || (leaves_ + 1) % look_every == 0) return false;
    came_ = 0;
    ++leaves_;
    return true;
  }
  // It was about to leave, and worked on.
  void leaves_only_now() { begin_absence(1); }
  bool is_away() const { return away_; }
  // Nothing is pending: what is between its calls is no absence.
  void rests() { away_ = false; }
  // It found the engine taken when it came back, at this tick: by whoever works for it.
  void came_at(uint64_t tick) { came_ = tick; }
  // It is back, and stays.
  void comes() {
    away_ = false;
    judge();
    came_ = 0;
  }
  // Once earned, until half of it is lost.
  bool is_due() const { return is_due_; }

  // Now and then the rank looks at what has come before it leaves: a program may start operations
  // for long, and wait for none.
  bool is_look_due() const { return leaves_ % look_every == 0; }

  bool is_on() const { return is_on_; }
  void begin() {
    is_on_ = true;
    seen_ = 0;
  }
  // It is not needed now. The next short absence may begin it again.
  void end() { is_on_ = false; }
  // For the message thread, which has found the engine free: whether the rank is away for so long
  // that the thread is to work for it. Then that is on its account, too.
  bool take_overdue() {
    if (!away_ || !was_long(1)) return false;
    judge();
    is_on_ = false;
    return true;
  }
  // A look of the message thread: true if the rank has left MPI since the last one. Many short
  // absences do not hide a long one after them.
  bool note_look() {
    const bool has_left = seen_ != leaves_;
    if (has_left && away_) begin_absence(1);
    seen_ = leaves_;
    return has_left;
  }

 private:
  // With so many leaves counted already.
  void begin_absence(uint32_t counted = 0) {
    away_ = true;
    left_ = base::ticks();
    first_ = leaves_ - counted;
  }
  // Each of those that are judged together was short, by their mean, or it was too long.
  void judge() {
    if (!was_long(1)) {
      const uint32_t more = leaves_ - first_;
      run_ = more < enough_ - run_ ? run_ + more : enough_;
      if (run_ == enough_ && enough_ != 0 && !is_due_) {
        is_due_ = true;
        due_since_ = leaves_;
      }
      return;
    }
    const uint32_t slip = enough_ / most_slips + 1;
    run_ = was_long(long_times) || run_ < slip ? 0 : run_ - slip;
    if (run_ < enough_ / 2 || run_ == 0) lose();
  }
  void lose() {
    is_on_ = false;
    if (!is_due_) return;
    is_due_ = false;
    if (leaves_ - due_since_ >= uint64_t(soon_times) * enough_) {
      enough_ = first_enough_;
    } else if (enough_ < dearest_times * uint64_t(first_enough_)) {
      enough_ *= 2;
    }
  }
  bool was_long(uint32_t times) {
    if (limit_ == 0) [[unlikely]] {
      const uint64_t ns = base::now_ns() - began_ns_;
      limit_ = uint64_t(double(base::ticks() - began_) / double(ns + 1) * double(short_ns)) + 1;
    }
    const uint64_t back = came_ ? came_ : base::ticks();
    return back > left_ && back - left_ > limit_ * times * (leaves_ - first_);
  }

  bool away_ = false;
  bool is_on_ = false;
  bool is_due_ = false;
  uint32_t run_ = 0;  // short absences, less those that were a little longer
  uint32_t enough_ = 0, first_enough_ = 0;
  uint32_t leaves_ = 0;  // how often it has left with work pending
  uint32_t first_ = 0;   // of these, before the absence that is judged
  uint32_t seen_ = 0;    // at the last look
  uint32_t due_since_ = 0;
  uint64_t left_ = 0;   // ticks
  uint64_t came_ = 0;   // ticks; 0: just now
  uint64_t limit_ = 0;  // of a short absence, ticks; 0: not known yet
  uint64_t began_ns_ = 0, began_ = 0;
};

}  // namespace headway::progress
