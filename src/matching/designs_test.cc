// The designs made of lists: how many lists they make, when, and that they give them back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>
#include <vector>

#include "matching/matcher.h"

namespace headway::matching {
namespace {

constexpr uint8_t gather = 3, allreduce = 13;

Config config_of(Design design, uint32_t processes, uint32_t kc = 8, uint32_t kp = 8) {
  Config config;
  config.design = design;
  config.processes = processes;
  config.collective_cap = kc;
  config.partner_cap = kp;
  return config;
}

// A process that gets messages from others: receives first, or messages first.
class Receiver {
 public:
  explicit Receiver(const Config& config) : ranks_(config.processes) {
    EXPECT_TRUE(posted.prepare(config) && unexpected.prepare(config));
  }

  // One call: a message from every other rank, received in the order of ranks; they come in the
  // opposite order.
  void call(uint64_t context, uint8_t collective, uint64_t bytes, int32_t tag, bool posts_first) {
    const Traffic traffic = Traffic::of(collective, bytes, ranks_);
    const size_t others = ranks_ - 1;
    while (hooks_.size() < others) hooks_.emplace_back();
    for (size_t i = 0; i < others; ++i) {
      hooks_[i].key = {context, int32_t(posts_first ? i + 1 : others - i), tag};
      hooks_[i].traffic = traffic;
      if (posts_first) {
        posted.post(&hooks_[i]);
      } else {
        unexpected.add(&hooks_[i]);
      }
    }
    for (size_t i = others; i-- > 0;) {
      if (posts_first) {
        ASSERT_EQ(posted.match(hooks_[i].key, traffic), &hooks_[i]);
      } else {
        ASSERT_EQ(unexpected.find(hooks_[i].key, traffic), &hooks_[i]);
        unexpected.remove(&hooks_[i]);
      }
    }
  }

  PostedQueue posted;
  UnexpectedQueue unexpected;

 private:
  uint32_t ranks_;
  std::deque<Message> hooks_;
};

uint32_t root_of(uint32_t n, uint32_t k) { return uint32_t(k * std::sqrt(double(n)) + 1e-9); }

// What the paper reports: 32, 45 and 64 lists at k = 1, 256 at k = 8 and 1,024 processes.
TEST(Collectives, AHotSpotGetsAsManyListsAsTheCapAllows) {
  const struct {
    uint32_t processes, k, lists;
  } cases[] = {{1024, 1, 32}, {2048, 1, 45}, {4096, 1, 64}, {1024, 8, 256}};
  for (const auto& [processes, k, lists] : cases) {
    ASSERT_EQ(root_of(processes, k), lists);
    for (const bool posts_first : {true, false}) {
      Receiver receiver(config_of(Design::col_pnp, processes, k));
      for (int tag = 0; tag < 3; ++tag) receiver.call(3, gather, 8, tag, posts_first);
      EXPECT_EQ(receiver.posted.queues(true), posts_first ? lists : 0);
      EXPECT_EQ(receiver.unexpected.queues(true), posts_first ? 0 : lists);
    }
  }
}

TEST(Collectives, TheFirstCallIsProfiledAndLaterOnesAreShort) {
  Receiver receiver(config_of(Design::col_list, 1024));
  Counters::Kind& seen = receiver.posted.counters.of[1];
  receiver.call(3, gather, 8, 0, true);
  EXPECT_EQ(receiver.posted.queues(true), 0u);
  EXPECT_EQ(seen.traversed, 1023u * 1024 / 2);
  seen = {};
  receiver.call(3, gather, 8, 1, true);
  EXPECT_EQ(receiver.posted.queues(true), 256u);
  EXPECT_LT(seen.traversed, 1023u * 3);
  EXPECT_GT(receiver.posted.counters.overhead_ns, 0u);
}

TEST(Collectives, AShapeThatNeedsMoreListsGetsALevelAndOneThatNeedsFewerNone) {
  Receiver receiver(config_of(Design::col_pnp, 1024));
  const Traffic few = Traffic::of(allreduce, 8, 1024), more = Traffic::of(allreduce, 4096, 1024);
  std::deque<Message> hooks(200);
  int tag = 0;
  const auto burst = [&](Traffic traffic, size_t count) {
    ++tag;
    for (size_t i = 0; i < count; ++i) {
      hooks[i].key = {3, int32_t(i), tag};
      hooks[i].traffic = traffic;
      receiver.posted.post(&hooks[i]);
    }
    for (size_t i = count; i-- > 0;) {
      ASSERT_EQ(receiver.posted.match(hooks[i].key, traffic), &hooks[i]);
    }
  };
  burst(few, 20);
  burst(few, 20);
  EXPECT_EQ(receiver.posted.queues(true), 11u);  // the average of 1 to 20, rounded up
  burst(more, 100);
  burst(more, 100);
  EXPECT_EQ(receiver.posted.queues(true), 11u + 51u);
  const Traffic least = Traffic::of(allreduce, 1 << 20, 1024);
  burst(least, 10);
  burst(least, 10);
  EXPECT_EQ(receiver.posted.queues(true), 11u + 51u);
}

// All runs of a persistent collective have one tag.
TEST(Collectives, RunsOfAPersistentCollectiveAreNotProfiledForEver) {
  Receiver receiver(config_of(Design::col_pnp, 64));
  for (int run = 0; run < 12; ++run) receiver.call(3, gather, 8, 5, true);
  EXPECT_EQ(receiver.posted.queues(true), 32u);
}

TEST(Collectives, WhatACommunicatorHadIsGivenBack) {
  Receiver receiver(config_of(Design::col_pnp, 256));
  size_t most = 0;
  for (uint64_t context = 3; context < 3 + 2 * 5000; context += 2) {
    for (int tag = 0; tag < 2; ++tag) receiver.call(context, gather, 8, tag, true);
    ASSERT_EQ(receiver.posted.queues(true), 128u);
    most = std::max(most, receiver.posted.memory());
    receiver.posted.forget(context);
    ASSERT_EQ(receiver.posted.queues(true), 0u);
  }
  EXPECT_LT(most, 10'000u);
}

// Communicators that are never freed share what lists there are.
TEST(Collectives, ThousandsOfCommunicatorsStayWithinTheCap) {
  Receiver receiver(config_of(Design::col_pnp, 16));
  for (uint64_t context = 3; context < 3 + 2 * 40'000; context += 2) {
    for (int tag = 0; tag < 2; ++tag) receiver.call(context, gather, 8, tag, true);
  }
  EXPECT_LE(receiver.posted.queues(true), 32u);
  EXPECT_LT(receiver.posted.memory(), 4u << 20);
}

TEST(Caps, OfZeroMeanNoListsOfTheirOwn) {
  Receiver receiver(config_of(Design::col_pnp, 512, 0, 0));
  for (int tag = 0; tag < 3; ++tag) {
    receiver.call(3, gather, 8, tag, true);
    receiver.call(2, 0, 8, tag, false);
  }
  EXPECT_EQ(receiver.posted.queues(true) + receiver.unexpected.queues(false), 0u);
}

TEST(Partners, BelowTheThresholdNobodyIsOne) {
  Receiver receiver(config_of(Design::pnp, 100));
  receiver.call(2, 0, 8, 1, true);
  EXPECT_EQ(receiver.posted.queues(false), 0u);
  Receiver larger(config_of(Design::pnp, 101));
  larger.call(2, 0, 8, 1, true);
  EXPECT_GT(larger.posted.queues(false), 0u);
}

TEST(Partners, ThoseAboveTheAverageHaveListsOfTheirOwn) {
  PostedQueue queue;
  ASSERT_TRUE(queue.prepare(config_of(Design::pnp, 64)));
  std::deque<Message> hooks(300);
  // Three busy sources, and many that are not.
  for (size_t i = 0; i < hooks.size(); ++i) {
    const bool busy = i % 2 == 0;
    hooks[i].key = {2, int32_t(busy ? i / 2 % 3 : 3 + i / 2 % 61), int32_t(i)};
    queue.post(&hooks[i]);
    // The average of 100 hooks of 64 processes is between 1 and 2.
    if (i == 99) {
      EXPECT_EQ(queue.queues(false), 4u) << "three partners and a new shared list";
    }
  }
  const size_t last_of_busy = 298, last_of_rare = 299;
  queue.counters = {};
  ASSERT_EQ(queue.match(hooks[last_of_rare].key), &hooks[last_of_rare]);
  const uint64_t rare = queue.counters.traversed();
  queue.counters = {};
  ASSERT_EQ(queue.match(hooks[last_of_busy].key), &hooks[last_of_busy]);
  EXPECT_LT(queue.counters.traversed(), rare);
  EXPECT_LE(queue.queues(false), 64u);
}

TEST(Partners, NeverOutnumberTheirCap) {
  for (const uint32_t kp : {1u, 2u, 8u}) {
    PostedQueue queue;
    ASSERT_TRUE(queue.prepare(config_of(Design::col_pnp, 1024, 8, kp)));
    std::deque<Message> hooks(20'000);
    std::mt19937 random(kp);
    for (size_t i = 0; i < hooks.size(); ++i) {
      hooks[i].key = {2, int32_t(random() % 1024), int32_t(i)};
      queue.post(&hooks[i]);
    }
    EXPECT_LE(queue.queues(false), 32 * kp);
    EXPECT_GT(queue.queues(false), 16 * kp);
    EXPECT_LT(queue.memory(), 40'000u);
  }
}

TEST(Sources, HaveAnArrayForEachCommunicatorUntilItIsFreed) {
  Receiver receiver(config_of(Design::source, 1024));
  for (uint64_t context = 2; context < 12; context += 2) {
    receiver.call(context + 1, gather, 8, 1, true);
  }
  EXPECT_EQ(receiver.posted.queues(false), 5u * 1024);
  for (uint64_t context = 2; context < 12; context += 2) receiver.posted.forget(context + 1);
  EXPECT_EQ(receiver.posted.queues(false), 0u);
}

// A frame is not trusted: a source far beyond all ranks costs no memory, and loses nothing.
TEST(Sources, OutOfAllRangeStandInOneList) {
  UnexpectedQueue queue;
  ASSERT_TRUE(queue.prepare(config_of(Design::source, 4)));
  Message far, negative;
  far.key = {2, INT32_MAX, 1};
  negative.key = {2, -7, 1};
  far.traffic = {200, 255};
  queue.add(&far);
  queue.add(&negative);
  EXPECT_LT(queue.memory(), 10'000u);
  EXPECT_EQ(queue.find({2, any, 1}), &far);
  EXPECT_EQ(queue.find({2, -7, 1}), &negative);
  queue.remove(&far);
  EXPECT_EQ(queue.find({2, any, 1}), &negative);
}

TEST(Traffic, ShapesGroupSizesOfMessagesAndCommunicators) {
  EXPECT_EQ(Traffic::of(1, 8, 64), Traffic::of(1, 40, 100));
  EXPECT_NE(Traffic::of(1, 0, 64), Traffic::of(1, 8, 64));
  EXPECT_NE(Traffic::of(1, 8, 64), Traffic::of(1, 4096, 64));
  EXPECT_NE(Traffic::of(1, 8, 64), Traffic::of(1, 8, 256));
  EXPECT_EQ(Traffic::of(1, 4 << 20, 64), Traffic::of(1, uint64_t(1) << 62, 64));
  for (const uint32_t ranks : {1u, 2u, 3u, 1000u, 1u << 20}) {
    EXPECT_GT(Traffic::of(1, 8, ranks).ranks(), ranks);
    EXPECT_LE(Traffic::of(1, 8, ranks).ranks(), 2 * ranks);
  }
}

TEST(Config, CapsAreMultiplesOfTheSquareRoot) {
  for (const uint32_t n : {1u, 2u, 511u, 512u, 1024u, 65'536u, 4'000'000u}) {
    for (const uint32_t k : {0u, 1u, 8u, 1024u}) {
      EXPECT_EQ(config_of(Design::list, n).queues(k), root_of(n, k)) << n << " " << k;
    }
  }
}

}  // namespace
}  // namespace headway::matching
