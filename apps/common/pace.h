// Pace: lets a compute phase take as long as it took on an older, slower processor. After each
// piece of work the program sleeps until the moment at which that processor would have finished
// it. All data is still touched, in order, so a library that hides communication behind the
// computation sees the same accesses at the old speed, and many ranks fit on a few cores.
// Thread: the one that computes. Owns nothing. Invariant: a piece never ends before its deadline
// by more than `kLead`; work that is already late is never hurried, only counted.
#pragma once

namespace apps {

class Pace {
 public:
  // `mhz` is the clock of the processor to imitate, 0 for full speed; `cycles_per_item` is what
  // one item of work cost on it.
  Pace(double mhz, double cycles_per_item);

  // A compute phase begins now.
  void start();

  // `items` more are done: sleeps if the imitated processor would still be busy with them.
  void done(long items);

  // Ends a phase: sleeps off what `done` left over.
  void finish();

  // Seconds by which phases ended later than the imitated processor would have ended them. If
  // this is not small against the computation, this machine is too slow for the pace.
  double late_seconds() const { return late_; }

 private:
  static constexpr double kLead = 100e-6;  // sleeps shorter than this cost more than they imitate

  void sleep_until_deadline() const;

  double seconds_per_item_;
  double deadline_ = 0;
  double late_ = 0;
};

}  // namespace apps
