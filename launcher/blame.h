// Blame: which rank's failure ends the job. A rank that is killed closes its sockets before its
// parent can see the death; its peers notice, abort, and are seen first. So whoever else was dying
// by a signal at the first suspicion is waited for, 2 s at most, since only such a death can be
// older. Times in ms of one clock. One thread. Owner: Job. Invariant: the blame moves at most once,
// to a rank that was dying at the first suspicion.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace headway::launcher {

struct Failure {
  int rank;
  int code;
  bool by_signal;
  std::string what;  // follows "rank N (...) "
  const char* hint = "";
};

class Blame {
 public:
  // `dying`: ranks that a signal is ending; asked for at the first suspicion only.
  void suspect(Failure failure, int64_t now, const std::function<std::vector<int>()>& dying);
  const std::optional<Failure>& failure() const { return failure_; }
  // Whether it stands. If not: when to ask again. `is_dying`: whether a rank still is.
  bool is_final(int64_t now, const std::function<bool(int)>& is_dying, int64_t& again_at) const;

 private:
  std::optional<Failure> failure_;
  std::vector<int> dying_;
  int64_t since_ = 0;
};

// Whether a signal is ending this process, or it has ended and was not waited for yet.
bool may_be_killed(pid_t pid);

}  // namespace headway::launcher
