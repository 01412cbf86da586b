// The order in which a rank's memory is locked, against what a list says; and the word, by threads.
#include "rma/locks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace headway::rma {
namespace {

using Kind = LockWord::Kind;
using Ranks = std::vector<uint32_t>;

struct Asked {
  uint32_t rank;
  Kind kind;
};

Ranks ask(Locks& locks, uint32_t rank, Kind kind) {
  Ranks has;
  locks.ask(rank, kind, [&](uint32_t next) { has.push_back(next); });
  return has;
}

Ranks give_back(Locks& locks, uint32_t rank) {
  Ranks has;
  locks.give_back(rank, [&](uint32_t next) { has.push_back(next); });
  return has;
}

TEST(Locks, AreSharedOrExclusive) {
  Locks locks;
  ASSERT_TRUE(locks.prepare(4));
  EXPECT_EQ(ask(locks, 0, Kind::shared), Ranks({0}));
  EXPECT_EQ(ask(locks, 1, Kind::shared), Ranks({1}));
  EXPECT_EQ(ask(locks, 2, Kind::exclusive), Ranks());
  EXPECT_TRUE(locks.waits(2));
  EXPECT_EQ(give_back(locks, 0), Ranks());
  EXPECT_EQ(give_back(locks, 1), Ranks({2}));
  EXPECT_EQ(locks.held_by(2), Kind::exclusive);
  EXPECT_EQ(ask(locks, 0, Kind::shared), Ranks());
  EXPECT_EQ(give_back(locks, 2), Ranks({0}));
  EXPECT_EQ(give_back(locks, 0), Ranks());
}

TEST(Locks, NobodyOvertakesWhoWaits) {
  Locks locks;
  LockWord word;
  ASSERT_TRUE(locks.prepare(4));
  locks.use(&word);
  ASSERT_TRUE(word.take(Kind::shared));
  EXPECT_EQ(ask(locks, 1, Kind::exclusive), Ranks());
  EXPECT_EQ(ask(locks, 2, Kind::shared), Ranks());  // would starve 1 otherwise
  EXPECT_FALSE(word.take(Kind::shared));            // and so would who sees the word
  EXPECT_TRUE(word.give_back(Kind::shared));        // the owner has to hear of it
  Ranks has;
  locks.serve([&](uint32_t rank) { has.push_back(rank); });
  EXPECT_EQ(has, Ranks({1}));
  EXPECT_EQ(give_back(locks, 1), Ranks({2}));
  EXPECT_TRUE(word.take(Kind::shared));  // nobody waits any more
  EXPECT_FALSE(word.give_back(Kind::shared));
  EXPECT_EQ(give_back(locks, 2), Ranks());
  EXPECT_FALSE(word.is_held());
}

TEST(Locks, AllWhoShareComeTogether) {
  constexpr uint32_t ranks = 40;
  Locks locks;
  ASSERT_TRUE(locks.prepare(ranks));
  ASSERT_EQ(ask(locks, 0, Kind::exclusive), Ranks({0}));
  Ranks expected;
  for (uint32_t rank = 1; rank < ranks; ++rank) {
    ASSERT_EQ(ask(locks, rank, Kind::shared), Ranks());
    expected.push_back(rank);
  }
  EXPECT_EQ(give_back(locks, 0), expected);
}

// Ranks below `seeing` see the word and try it first; the rest ask. Both against a list.
TEST(Locks, FollowAListOfWhoAsked) {
  const char* told = getenv("HEADWAY_TEST_SEED");
  const uint64_t seed = told ? strtoull(told, nullptr, 0) : 1;
  printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  constexpr uint32_t ranks = 7, seeing = 3;
  Locks locks;
  LockWord word;
  ASSERT_TRUE(locks.prepare(ranks));
  locks.use(&word);
  std::vector<Asked> held;
  std::vector<bool> by_word(ranks);
  std::deque<Asked> waiting;
  const auto is_free_for = [&](Kind kind) {
    return held.empty() || (kind == Kind::shared && held[0].kind == Kind::shared);
  };
  const auto find = [](auto& list, uint32_t rank) {
    return std::find_if(list.begin(), list.end(),
                        [&](const Asked& one) { return one.rank == rank; });
  };
  for (int step = 0; step < 20'000; ++step) {
    const uint32_t rank = uint32_t(random() % ranks);
    Ranks expected, has;
    if (const auto mine = find(held, rank); mine != held.end()) {
      const Kind kind = mine->kind;
      held.erase(mine);
      while (!waiting.empty() && is_free_for(waiting.front().kind)) {
        expected.push_back(waiting.front().rank);
        held.push_back(waiting.front());
        waiting.pop_front();
      }
      if (!by_word[rank]) {
        has = give_back(locks, rank);
      } else if (word.give_back(kind)) {
        locks.serve([&](uint32_t next) { has.push_back(next); });
      }
      by_word[rank] = false;
    } else if (find(waiting, rank) == waiting.end()) {
      const Asked asked{rank, random() % 3 ? Kind::shared : Kind::exclusive};
      const bool is_free = waiting.empty() && is_free_for(asked.kind);
      if (is_free) {
        held.push_back(asked);
      } else {
        waiting.push_back(asked);
      }
      if (rank < seeing && word.take(asked.kind)) {
        ASSERT_TRUE(is_free) << "step " << step;
        by_word[rank] = true;
      } else {
        if (is_free) expected.push_back(rank);
        ASSERT_FALSE(rank < seeing && is_free) << "step " << step;
        has = ask(locks, rank, asked.kind);
      }
    }
    ASSERT_EQ(has, expected) << "step " << step;
    ASSERT_EQ(word.is_held(), !held.empty()) << "step " << step;
  }
}

// Threads that see the word, beside an owner whom others ask: nobody is in with one who is alone,
// and nobody waits for ever.
TEST(Locks, KeepThreadsApart) {
  constexpr int turns = 20'000;
  Locks locks;
  LockWord word;
  ASSERT_TRUE(locks.prepare(2));
  locks.use(&word);
  std::mutex engine;
  std::atomic<int> sharing{0};
  std::atomic<bool> is_alone{false}, is_wrong{false}, is_given{false};
  const auto serve = [&] {
    const std::lock_guard<std::mutex> holds(engine);
    locks.serve([&](uint32_t) { is_given = true; });
  };
  const auto see = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int turn = 0; turn < turns; ++turn) {
      const Kind kind = random() % 2 ? Kind::shared : Kind::exclusive;
      while (!word.take(kind)) std::this_thread::yield();
      if (kind == Kind::exclusive) {
        if (is_alone.exchange(true) || sharing != 0) is_wrong = true;
        is_alone = false;
      } else {
        ++sharing;
        if (is_alone) is_wrong = true;
        --sharing;
      }
      if (word.give_back(kind)) serve();
    }
  };
  std::thread first(see, 1), second(see, 2);
  for (int turn = 0; turn < turns / 10; ++turn) {
    is_given = false;
    {
      const std::lock_guard<std::mutex> holds(engine);
      locks.ask(0, Kind::exclusive, [&](uint32_t) { is_given = true; });
    }
    while (!is_given) std::this_thread::yield();
    if (is_alone.exchange(true) || sharing != 0) is_wrong = true;
    is_alone = false;
    const std::lock_guard<std::mutex> holds(engine);
    locks.give_back(0, [](uint32_t) {});
  }
  first.join();
  second.join();
  EXPECT_FALSE(is_wrong);
  EXPECT_FALSE(word.is_held());
}

}  // namespace
}  // namespace headway::rma
