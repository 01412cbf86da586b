// Linger: whether a loop of tests that has found nothing looks for a moment more before it gives
// its core away. Between ranks that run at the same time on two cores a message takes less than the
// yield; between ranks of one core every moment of looking is lost. So it learns which of both is
// so. Thread: holder of the engine. Owner: the waiter. Invariant: it never lasts longer than
// longest_ns.
#pragma once
#include <cstdint>

namespace headway::waiting {

class Linger {
 public:
  static constexpr uint64_t longest_ns = 400;  // a yield where nobody else runs takes 500
  static constexpr uint32_t most_credit = 8, try_every = 16;

  // Nothing was found at that time. True: it is to be looked for once more at once.
  bool goes_on(uint64_t now_ns) {
    if (since_) {
      if (now_ns - since_ < longest_ns) return true;
      since_ = 0;
      credit_ -= credit_ != 0;
      return false;
    }
    if (!credit_ && ++missed_ % try_every) return false;
    since_ = now_ns;
    return true;
  }
  // Something has moved.
  void note_moved() {
    if (!since_) return;
    since_ = 0;
    credit_ += credit_ != most_credit;
  }

 private:
  uint64_t since_ = 0;   // 0: it does not
  uint32_t credit_ = 0;  // times that it was worth it, less those that it was not
  uint32_t missed_ = 0;  // times without credit
};

}  // namespace headway::waiting
