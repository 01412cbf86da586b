// How often buffers that were asked for are looked at while nothing is written: two engines of one
// process, connected by TCP. Each look takes a core from somebody.
#include <time.h>

#include "protocols/prefetch/prefetch_test_pair.h"

namespace headway::protocols {
namespace {

class PrefetchingLooks : public Prefetching {
 protected:
  uint64_t looks() { return sender().presends().tracked().looks; }
  // As a sleeper does it: it is up when it has been told to look, or a little later. Returns how
  // often that was.
  uint64_t sleep_and_look(uint64_t ms) {
    uint64_t wakes = 0;
    for (const uint64_t end = base::now_ns() + ms * 1'000'000; base::now_ns() < end; ++wakes) {
      const timespec nap{0, long(sender().presends().next_look_us()) * 1000};
      nanosleep(&nap, nullptr);
      both();
    }
    return wakes;
  }
  // Looks do, within some seconds.
  static constexpr uint32_t rare_us = 40'000;
  bool become_rare() {
    for (int i = 0; i < 100; ++i) {
      if (sleep_and_look(50) && sender().presends().next_look_us() >= rare_us) return true;
    }
    return false;
  }
  // Its next message is asked for, and all of it has been sent early.
  Request* have_sent(Buffer& out, Buffer& in, int tag = 1) {
    Request* receive = post(in, tag);
    both();
    fill(out);
    return comes_early(out.size()) ? receive : nullptr;
  }
};

// Its threads write nothing then, as a rule. When one goes on, looks are as frequent as before.
TEST_F(PrefetchingLooks, AreRareWhileTheProgramWaits) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = have_sent(out, in);
  ASSERT_TRUE(receive);
  sender().handoff().set_poller(true);
  const uint64_t before = looks();
  ASSERT_TRUE(become_rare());
  EXPECT_LE(looks() - before, 60u);
  // Another thread may write all the same.
  out[page] ^= 1;
  EXPECT_TRUE(comes_early(page));
  ASSERT_TRUE(become_rare());
  sender().handoff().set_poller(false);
  sender().end_wait();
  EXPECT_LT(sender().presends().next_look_us(), rare_us / 2);
  out[page] ^= 1;
  EXPECT_TRUE(comes_early(page));
  complete(receive, out, in);
}

// To wake up costs more than to look.
TEST_F(PrefetchingLooks, AreAtAllBuffersAtATime) {
  constexpr int count = 4;
  std::vector<Buffer> outs(count, Buffer(long_size)), ins(count, Buffer(long_size));
  for (int i = 0; i < count; ++i) learn(outs[i], ins[i], i);
  std::vector<Request*> receives;
  for (int i = 0; i < count; ++i) {
    receives.push_back(have_sent(outs[i], ins[i], i));
    ASSERT_TRUE(receives.back());
  }
  const uint64_t before = looks();
  const uint64_t wakes = sleep_and_look(60);
  EXPECT_GE(10 * (looks() - before), 22 * wakes);  // 14 to 20 where each has its own time
  EXPECT_GE(looks() - before, 3u * count);         // a slow machine has few
  for (int i = 0; i < count; ++i) complete(receives[size_t(i)], outs[i], ins[i], i);
}

// Between two sends there are so many at most.
TEST_F(PrefetchingLooks, AreRareWhereMessagesAre) {
  constexpr uint64_t period_ms = 1000;
  Buffer out(long_size), in(long_size);
  for (int i = 0; i < 6; ++i) {
    drive(period_ms);
    exchange(out, in);
  }
  Request* receive = have_sent(out, in);
  ASSERT_TRUE(receive);
  const uint64_t before = looks();
  sleep_and_look(period_ms / 2);
  EXPECT_LE(looks() - before, 48u);
  complete(receive, out, in);
}

}  // namespace
}  // namespace headway::protocols
