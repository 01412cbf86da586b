// Patrol: tells whether a rank that leaves MPI with work pending will be back at once. One that was
// never away for long, many times in a row, is not guarded by the doorbell: to arm it costs a tenth
// of a microsecond each time, and who rings it wakes a thread that finds nothing to do, on the core
// of a rank that is back. Instead the message thread looks now and then whether the rank is still
// away, and takes over if it is. A clock costs as much as half a call: it is read where the rank
// leaves with nothing on its account, and where it waits. Calls between the two count as ends of
// absences, and the mean is judged. Thread: holder of the engine. Owner: the handoff.
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
  static constexpr uint32_t tick_us = 1000;
  static constexpr uint32_t look_every = 32;

  // After `enough` short absences; 0: never.
  void start(uint32_t enough) {
    enough_ = enough;
    began_ns_ = base::now_ns();
    began_ = base::ticks();
  }
  // It leaves MPI with work pending, perhaps after a call for a moment.
  void leaves() {
    if (!away_) begin_absence();
    ++leaves_;
  }
  // It was about to leave, and worked on.
  void leaves_only_now() { begin_absence(1); }
  bool is_away() const { return away_; }
  // Nothing is pending: what is between its calls is no absence.
  void rests() { away_ = false; }
  // It is back, and stays.
  void comes() {
    away_ = false;
    if (was_long()) {
      end_by_long();
    } else {
      const uint32_t more = leaves_ - first_;  // each of them was short, by their mean
      run_ = more < enough_ - run_ ? run_ + more : enough_;
    }
  }
  bool is_due() const { return run_ == enough_ && enough_ != 0; }

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
  // It is to be earned anew.
  void end_by_long() {
    is_on_ = false;
    run_ = 0;
  }
  // For the message thread, which has found the engine free.
  bool is_overdue() { return away_ && was_long(); }
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
  bool was_long() {
    if (limit_ == 0) [[unlikely]] {
      const uint64_t ns = base::now_ns() - began_ns_;
      limit_ = uint64_t(double(base::ticks() - began_) / double(ns + 1) * double(short_ns)) + 1;
    }
    return base::ticks() - left_ > limit_ * (leaves_ - first_);
  }

  bool away_ = false;
  bool is_on_ = false;
  uint32_t run_ = 0;  // short absences, one after the other
  uint32_t enough_ = 0;
  uint32_t leaves_ = 0;  // how often it has left with work pending
  uint32_t first_ = 0;   // of these, before the absence that is judged
  uint32_t seen_ = 0;    // at the last look
  uint64_t left_ = 0;    // ticks
  uint64_t limit_ = 0;   // of a short absence, ticks; 0: not known yet
  uint64_t began_ns_ = 0, began_ = 0;
};

}  // namespace headway::progress
