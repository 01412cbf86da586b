// How long a page must be left alone to be taken as final: two engines of one process, connected by
// TCP. What a program does to its pages is learnt, and no page is waited for longer than it needs.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "protocols/prefetch/prefetch_test_pair.h"

namespace headway::protocols {
namespace {

class PrefetchingPatience : public Prefetching {
 protected:
  static constexpr uint64_t period_ms = 640, guess_ns = period_ms * 1'000'000 / 32;

  // What a moment tells of time means nothing where this thread did not have its core: such a test
  // fails only if it was served all the time.
  void timely(bool holds, const std::string& what) {
    if (holds) return;
    if (longest_gap() < guess_ns / 8) {
      ADD_FAILURE() << what;
    } else {
      held_up_ = what + ", but this thread was held up for " +
                 std::to_string(longest_gap() / 1'000'000) + " ms";
    }
  }
  // Whether so much comes before its send: pages that a late thread took for final do not come
  // again.
  bool comes(uint64_t bytes) {
    const bool came = comes_early(bytes);
    timely(came, std::to_string(bytes) + " bytes did not come early");
    return came;
  }
  void TearDown() override {
    Prefetching::TearDown();
    if (!held_up_.empty()) GTEST_SKIP() << held_up_;
  }
  std::string held_up_;

  void learn_slowly(Buffer& out, Buffer& in) {
    for (int i = 0; i < 6; ++i) {
      drive(period_ms);
      exchange(out, in);
    }
  }
  // From the last write of a message, which is written once or, `pause_ns` later, again, until all
  // of it has come, in ns. Nothing: it did not come.
  std::optional<uint64_t> wait_after(Buffer& in, Buffer& out, uint64_t pause_ns) {
    Request* receive = post(in);
    drive(50);
    fill(out);
    if (pause_ns) {
      drive(pause_ns / 1'000'000);
      fill(out);
    }
    const uint64_t from = base::now_ns();
    const bool came = comes(out.size());
    const uint64_t wait = base::now_ns() - from;
    complete(receive, out, in);
    return came ? std::optional(wait) : std::nullopt;
  }
};

// A buffer that fills slowly, side by side, is learnt to be waited for, at little cost: also for
// what has not been sent.
TEST_F(PrefetchingPatience, PagesThatAreWrittenNowAndThenAreNotFinal) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  const auto fill_slowly = [&] {
    Request* receive = post(in);
    both();
    for (size_t key = 0; key < 16; ++key) {
      for (size_t at = key; at < long_size; at += page) out[at] = char(random_());
      drive(8);
    }
    drive(200);
    complete(receive, out, in);
  };
  // A process that is not served for long may take pages for final, of half the messages at most.
  for (int i = 0; i < 3; ++i) fill_slowly();
  const uint64_t sent = sender().counters().presend_bytes, before = used();
  for (int i = 0; i < 4; ++i) fill_slowly();
  EXPECT_LE(sender().counters().presend_bytes - sent, 6 * long_size);
  timely(used() - before >= 2 * long_size, "used " + std::to_string(used() - before) + " bytes");
}

// What is sent early takes nothing from the link that a message, which has been sent, is about to
// take.
TEST_F(PrefetchingPatience, WhatHasBeenAnnouncedGoesFirst) {
  Buffer out(long_size), in(long_size), other(long_size), place(long_size);
  for (int i = 0; i < 2; ++i) {
    exchange(other, place, 2);
    drive(period_ms);
  }
  learn(out, in);
  Request* receive = post(in);
  drive(5);
  fill(out);
  Request* announced = send(other, 2);
  const uint64_t from = base::now_ns();
  const bool came = comes(page);
  const uint64_t wait = base::now_ns() - from;
  if (came) {
    EXPECT_GE(wait, period_ms * 1'000'000 / 8);
  }
  Request* later = post(place, 2);
  end(announced, later);
  complete(receive, out, in);
}

// Nothing can be sent early beside what a full link holds back, and the link tells when that is
// over: a rank that waits meanwhile is not woken to see that nothing has changed.
TEST_F(PrefetchingPatience, AFullLinkIsNotAskedAllTheTime) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = post(in);
  for (int i = 0; i < 1000 && !sender().presends().is_asked(); ++i) both();
  ASSERT_TRUE(sender().presends().is_asked());
  Buffer other(short_size), taken(short_size);
  std::vector<Request*> sends;
  while (!sender().links().is_busy() && sends.size() < 10'000) sends.push_back(send(other, 2));
  ASSERT_TRUE(sender().links().is_busy()) << "after " << sends.size() << " messages";
  int asked = 0;
  for (int i = 0; i < 20; ++i) {
    sender().advance();
    if (!sender().links().is_busy()) continue;  // the kernel has taken more
    ++asked;
    EXPECT_GE(sender().presends().next_look_us(), 1000u);
  }
  EXPECT_GT(asked, 0);
  for (Request* request : sends) end(request, post(taken, 2));
  complete(receive, out, in);
}

// The first guess, a part of the time between two sends, is much too long for what is written in
// one go: that is seen at once. A pause of half of it between two writes is reason to keep it.
TEST_F(PrefetchingPatience, HowLongIsWaitedFollowsThePausesBetweenWrites) {
  Buffer outs[2] = {Buffer(long_size), Buffer(long_size)};
  Buffer ins[2] = {Buffer(long_size), Buffer(long_size)};
  for (const bool pausing : {false, true}) {
    Buffer &out = outs[pausing], &in = ins[pausing];
    learn_slowly(out, in);
    uint64_t soonest = ~0ull, last = 0;
    for (int i = 0; i < 4; ++i) {
      const auto wait = wait_after(in, out, pausing ? guess_ns / 2 : 0);
      if (!wait) return;
      last = *wait;
      if (i == 0) timely(last >= guess_ns, "the first wait is " + std::to_string(last) + " ns");
      soonest = std::min(soonest, last);
    }
    timely(pausing ? last >= guess_ns / 4 * 3 : soonest <= guess_ns / 2,
           "soonest " + std::to_string(soonest) + ", last " + std::to_string(last) + " ns");
  }
}

// Looks are rare while many pages are written all the time. What is found written at each of them
// has not paused.
TEST_F(PrefetchingPatience, TheTimeBetweenTwoLooksIsNoPause) {
  constexpr size_t pages = 200;  // 10 ms between two looks
  Buffer out(pages * page), in(pages * page);
  learn_slowly(out, in);
  uint64_t soonest = ~0ull;
  for (int i = 0; i < 4; ++i) {
    Request* receive = post(in);
    both();
    const uint64_t end = base::now_ns() + 60'000'000;
    while (base::now_ns() < end) {
      for (size_t at = 0; at < out.size(); at += page) ++out[at];
      both();
    }
    const uint64_t from = base::now_ns();
    const bool came = comes(out.size());
    if (came) soonest = std::min(soonest, base::now_ns() - from);
    complete(receive, out, in);
    if (!came) return;
  }
  timely(soonest <= guess_ns / 4 * 3, "soonest " + std::to_string(soonest) + " ns");
}

// Where it was right all along, a little less is tried with each message.
TEST_F(PrefetchingPatience, HowLongIsWaitedShrinksWhileItIsRight) {
  Buffer out(long_size), in(long_size);
  learn_slowly(out, in);
  uint64_t soonest = ~0ull;
  for (int i = 0; i < 12; ++i) {
    const auto wait = wait_after(in, out, guess_ns / 4);
    if (!wait) return;
    soonest = std::min(soonest, *wait);
  }
  timely(soonest <= guess_ns / 4 * 3, "soonest " + std::to_string(soonest) + " ns");
}

// A fifth of a message that is written again, each time, is no reason to wait: what one message was
// mistaken about does not count with the next.
TEST_F(PrefetchingPatience, MistakesOfOneMessageDoNotCountWithTheNext) {
  constexpr size_t pages = 50;
  Buffer out(pages * page), in(pages * page);
  learn(out, in);
  uint64_t soonest = ~0ull;
  for (int i = 0; i < 30; ++i) {
    Request* receive = post(in);
    drive(1);
    fill(out);
    const uint64_t from = base::now_ns();
    bool came = comes(out.size());
    if (i >= 25) soonest = std::min(soonest, base::now_ns() - from);
    for (size_t at = 0; at < pages / 5; ++at) out[at * 5 * page] ^= 1;
    came = came && comes(pages / 5 * page);
    complete(receive, out, in);
    if (!came) return;
  }
  timely(soonest <= 30'000'000u, "soonest " + std::to_string(soonest) + " ns");
}

// As at the borders of a sort's buckets: two pages of five are written again after a while. These
// are waited for, and no others.
TEST_F(PrefetchingPatience, PagesThatAreWrittenAgainAreWaitedForAlone) {
  constexpr size_t pages = 50, steady = pages / 5 * 3;
  Buffer out(pages * page), in(pages * page);
  learn(out, in);
  uint64_t soonest = ~0ull, again = 0, before = 0;
  for (int i = 0; i < 12; ++i) {
    Request* receive = post(in);
    drive(1);
    fill(out);
    const uint64_t from = base::now_ns();
    const bool came = comes(steady * page);
    if (i >= 8) soonest = std::min(soonest, base::now_ns() - from);
    for (int late = 0; late < 3; ++late) {
      drive(40);
      for (size_t at = 0; at < pages; ++at) {
        if (at % 5 < 2) out[at * page] ^= 1;
      }
    }
    if (i == 8) again = sender().counters().presend_again_bytes, before = used();
    complete(receive, out, in);
    if (!came) return;
  }
  timely(soonest <= 30'000'000u, "soonest " + std::to_string(soonest) + " ns");
  EXPECT_LE(sender().counters().presend_again_bytes - again, 2 * (pages - steady) * page);
  timely(used() - before >= 4 * steady * page,
         "used " + std::to_string(used() - before) + " bytes");
}

}  // namespace
}  // namespace headway::protocols
