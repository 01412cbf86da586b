// Pace: lets a compute phase take as long as it took on an older, slower processor. After each
// piece of work the program sleeps until the moment at which that processor would have finished
// it. All data is still touched, in order, so a library that hides communication behind the
// computation sees the same accesses at the old speed, and many ranks fit on a few cores.
// A library may let the program run on before its data is there and stop it where it touches what
// is missing. The old processor would have stood still as well, so such time is added, not made up.
// Thread: the one that computes. Owns nothing. Invariant: a piece never ends before its deadline
// by more than `lead_`; work that is already late is never hurried, only counted.
#pragma once

namespace apps {

// Of programs whose iterations take seconds: woken as rarely as if so many times more of them ran.
constexpr int kCoarse = 4;

class Pace {
 public:
  // `mhz` is the clock of the processor to imitate, 0 for full speed; `cycles_per_item` is what
  // one item of work cost on it; `programs` of this kind share this machine. On a simulated cluster
  // that is slowed or faster (its CLUSTER_DILATION), the processor is so, too.
  Pace(double mhz, double cycles_per_item, int programs);

  // A compute phase begins now.
  void start();

  // `items` more are done: sleeps if the imitated processor would still be busy with them.
  void done(long items);

  // Ends a phase: sleeps off what `done` left over.
  void finish();

  // Seconds by which phases ended later than the imitated processor would have ended them. If
  // this is not small against the computation, this machine is too slow for the pace.
  double late_seconds() const { return late_; }

  // Seconds in which the work itself waited for something, data that had not arrived.
  double blocked_seconds() const { return blocked_; }

 private:
  // What this thread had used up at some moment.
  struct Mark {
    double time = 0, processor = 0;
    long waits = 0;
  };
  static Mark mark();

  void add_blocked();
  void sleep_until_deadline();

  double seconds_per_item_;
  double lead_;  // sleeps shorter than this cost more than they imitate
  double deadline_ = 0;
  double seen_ = 0;  // the end of the piece before
  Mark mark_;
  double late_ = 0;
  double blocked_ = 0;
};

}  // namespace apps
