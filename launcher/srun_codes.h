// The true exit code of a job that srun runs. With --kill-on-bad-exit it ends with 143 whatever a
// rank has ended with; its lines on stderr ("srun: error: h1: task 7: Exited with exit code 5")
// tell more. Thread: the launcher's only one. Invariant: the first such code counts that is not
// that of a rank which srun itself has ended.
#pragma once
#include <string>
#include <string_view>

namespace headway::launcher {

class SrunCodes {
 public:
  // What srun has written, in pieces of any size.
  void take(std::string_view text);
  // 0: nothing was told.
  int code() const { return code_; }

 private:
  void take_line(std::string_view line);

  std::string line_;  // the begun one, as far as it may be one of srun's
  int code_ = 0;
};

}  // namespace headway::launcher
