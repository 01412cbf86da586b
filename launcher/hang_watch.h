// HangWatch: says while a job runs that some of its ranks can never go on. It looks at the ranks
// once a second, which costs them nothing (their memory is read), and speaks when two looks prove
// it (causes.h): once for each set of ranks. Thread: the launcher's only one. Owner: Job.
// Invariant: a job that may get on is never accused.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "causes.h"

namespace headway::launcher {

class HangWatch {
 public:
  // Looks at all ranks, with their communicators or without.
  using Look = std::function<std::vector<Seen>(bool with_comms)>;

  void begin(int64_t now_ms) { due_at_ = now_ms + period_ms; }
  // In ms of the monotonic clock; -1 for never.
  int64_t due_at() const { return due_at_; }
  // The next look is due: what is to be said, or "".
  std::string look(int64_t now_ms, const Look& look);
  // What one of the last two looks and one now show, in JSON: for whoever asks (`headway where`).
  std::string as_json(int64_t now_ms, const Look& look) const;
  // Whether these ranks were told of already.
  bool has_told(const std::vector<int>& ranks) const { return !ranks.empty() && ranks == told_; }

 private:
  static constexpr int64_t period_ms = 1000;

  struct Looked {
    std::vector<Seen> ranks;  // none: no rank waited then
    int64_t at_ms = 0;
  };

  int64_t due_at_ = -1;
  Looked last_, earlier_;
  std::vector<int> told_;
};

}  // namespace headway::launcher
