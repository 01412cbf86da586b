#include "base/signals.h"

#include <csignal>
#include <pthread.h>

namespace headway::base {

void on_dump_signal(void (*dump)(int)) {
  struct sigaction now {};
  if (sigaction(SIGUSR1, nullptr, &now) != 0) return;
  const bool taken = (now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL;
  if (taken) return;
  struct sigaction ours {};
  ours.sa_handler = dump;
  ours.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &ours, nullptr);
}

void on_fork_in_child(void (*child)()) {
  static bool done = false;
  if (done) return;
  done = pthread_atfork(nullptr, nullptr, child) == 0;
}

}  // namespace headway::base
