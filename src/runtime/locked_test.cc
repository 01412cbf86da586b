// Whoever holds the lock of starts and ends waits with it: no callback of a tool runs there.
#include "runtime/locked.h"

#include <gtest/gtest.h>

namespace headway::runtime {
namespace {

TEST(Locked, NoCallbackRunsInItsWaits) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const uint64_t field = 1;
  base::deliver_in_wait.store([] {});
  base::put_event(1, base::EventSource::program, &field, 1);
  EXPECT_TRUE(base::events_wait_in_wait());
  {
    const Locked locked(mutex);
    EXPECT_FALSE(base::events_wait_in_wait());
  }
  EXPECT_TRUE(base::events_wait_in_wait());
  base::deliver_in_wait.store(nullptr);
}

}  // namespace
}  // namespace headway::runtime
