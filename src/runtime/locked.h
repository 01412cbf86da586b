// Locked: holds a mutex from its making to the end of its scope. Thread: any. Owner: the scope.
// Invariants: the mutex outlives it; no callback of a tool is called in waits meanwhile.
#pragma once
#include <pthread.h>

#include "base/tool_events.h"

namespace headway::runtime {

class Locked {
 public:
  explicit Locked(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Locked() { pthread_mutex_unlock(&mutex_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  pthread_mutex_t& mutex_;
  base::KeptFromWaits kept_;
};

}  // namespace headway::runtime
