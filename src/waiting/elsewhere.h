// Elsewhere: a thread stays off one core for a moment, though it may run there: where it sleeps, or
// where it is to go. Thread: the one that made it, and only that one moves. Owner: the waiter.
// Invariant: afterwards the thread may run where the program lets it, and whoever else sets its
// cores meanwhile has the last word. The thread starts no other one meanwhile, which would inherit.
#pragma once
#include <cstdint>
#include <sched.h>

namespace headway::waiting {

class Elsewhere {
 public:
  Elsewhere() = default;
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;
  ~Elsewhere() {
    if (is_off_) come_back();
  }

  // Off `core`, at once. False where it has no other, or where the system forbids it.
  bool leave(uint32_t core);

 private:
  void come_back();

  cpu_set_t allowed_, others_;
  bool is_off_ = false;
};

}  // namespace headway::waiting
