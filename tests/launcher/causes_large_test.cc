// What is proven of thousands of ranks, and how long that takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>

#include "base/whereabouts.h"
#include "causes.h"

namespace headway::launcher {
namespace {

constexpr int ranks = 4096;
constexpr double most_ms = 20;
constexpr uint64_t world = 1;

using Make = std::function<void(int rank, Spot& spot)>;

std::vector<Seen> made(const Make& make) {
  std::vector<int> all(ranks);
  for (int rank = 0; rank < ranks; ++rank) all[size_t(rank)] = rank;
  const Members members(std::move(all));
  std::vector<Seen> seen;
  for (int rank = 0; rank < ranks; ++rank) {
    Seen one{rank, 100 + rank, {}};
    one.spot.kind = Spot::Kind::in_call;
    one.spot.state = 'S';
    one.spot.asleep = true;
    one.spot.signs.assign(16, 7);
    one.spot.comms = {{world, 3, "MPI_COMM_WORLD", members}};
    one.spot.context = world;
    one.spot.peer = base::nobody;
    one.spot.tag = base::nobody;
    make(rank, one.spot);
    seen.push_back(std::move(one));
  }
  return seen;
}

void receives(Spot& spot, int from) {
  spot.call = "MPI_Recv";
  spot.peer = from;
  spot.tag = 3;
  spot.awaited = from < 0 ? -1 : from;
}

struct Told {
  std::vector<int> dead;
  std::string verdict, picture;
  std::vector<WaitGroup> groups;
};

// The best of some tries: the machine may be busy.
Told told_in_time(const char* what, const std::vector<Seen>& seen) {
  Told told;
  double best = 1e9;
  for (int i = 0; i < 5 || (best >= most_ms && i < 25); ++i) {
    std::vector<Seen> after = seen;
    told = {};  // what the last one told does not go in this one's time
    const auto began = std::chrono::steady_clock::now();
    const Judgement judgement(seen, std::move(after), 1);
    told = {judgement.dead(), judgement.verdict(), judgement.picture(), judgement.graph()};
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    best = std::min(best, took.count());
  }
  std::printf("%s: %.2f ms, %zu groups\n", what, best, told.groups.size());
#if defined(__OPTIMIZE__) && !defined(HEADWAY_DEBUG) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
  EXPECT_LT(best, most_ms) << what;
#endif
  return told;
}

TEST(CausesLarge, ARing) {
  const Told told = told_in_time(
      "a ring", made([](int rank, Spot& spot) { receives(spot, (rank + 1) % ranks); }));
  EXPECT_EQ(told.dead.size(), size_t(ranks));
  EXPECT_EQ(told.groups.size(), size_t(ranks));
  EXPECT_NE(told.verdict.find("ranks 0-4095 wait for one another"), std::string::npos);
  EXPECT_NE(told.picture.find("and 4088 other ranks elsewhere"), std::string::npos);
}

// The last one computes, and the news of it goes the whole way.
TEST(CausesLarge, AChainBehindOneThatGoesOn) {
  for (const bool backwards : {false, true}) {
    const Told told = told_in_time("a chain", made([&](int rank, Spot& spot) {
                                     const int end = backwards ? 0 : ranks - 1;
                                     receives(spot, backwards ? rank - 1 : rank + 1);
                                     if (rank == end) spot.kind = Spot::Kind::computing;
                                   }));
    EXPECT_TRUE(told.dead.empty());
  }
}

TEST(CausesLarge, ChainsIntoOneCircle) {
  const Told told = told_in_time("chains", made([](int rank, Spot& spot) {
                                   receives(spot, rank < 4094 ? rank + 1 : 8189 - rank);
                                 }));
  EXPECT_EQ(told.dead.size(), size_t(ranks));
  EXPECT_NE(told.verdict.find("ranks 4094 and 4095 wait for one another"), std::string::npos);
}

TEST(CausesLarge, ACollectiveThatOneHasNotBegun) {
  const Told told = told_in_time("a barrier", made([](int rank, Spot& spot) {
                                   if (rank == 17) {
                                     receives(spot, 18);
                                     spot.comms[0].collectives = 2;
                                   } else {
                                     spot.call = "MPI_Barrier";
                                   }
                                 }));
  EXPECT_EQ(told.dead.size(), size_t(ranks));
  EXPECT_EQ(told.groups.size(), 2u);
  EXPECT_EQ(told.groups[0].waits_for, std::vector<int>{17});
  EXPECT_NE(told.verdict.find("which rank 17 has not come to"), std::string::npos);
}

// Nothing is found to be wrong with it: all are looked at.
TEST(CausesLarge, ACollectiveThatAllHaveBegun) {
  const Told told =
      told_in_time("all in one", made([](int, Spot& spot) { spot.call = "MPI_Barrier"; }));
  EXPECT_EQ(told.dead.size(), size_t(ranks));
  EXPECT_EQ(told.groups.size(), 1u);
}

TEST(CausesLarge, ReceivesOfAnybody) {
  const Told told = told_in_time("anybody", made([](int, Spot& spot) { receives(spot, -1); }));
  EXPECT_EQ(told.dead.size(), size_t(ranks));
  EXPECT_EQ(told.groups.size(), 1u);
  EXPECT_EQ(told.groups[0].waits_for.size(), size_t(ranks - 1));
}

// Against the plain way: again and again over all, until nothing changes.
TEST(CausesLarge, TheGraphIsThatOfThePlainWay) {
  std::mt19937 draw(4711);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(draw);
  };
  for (int round = 0; round < 2000; ++round) {
    const size_t size = 1 + below(9);
    WaitGraph graph(size);
    std::vector<char> live(size), plain;
    std::vector<std::vector<std::vector<size_t>>> needs(size);  // each one of some
    std::vector<std::vector<size_t>> sets(3);
    for (std::vector<size_t>& set : sets) {
      for (size_t i = 0; i < size; ++i) {
        if (below(3) == 0) set.push_back(i);
      }
    }
    std::vector<size_t> everybody;
    for (size_t i = 0; i < size; ++i) everybody.push_back(i);
    for (size_t i = 0; i < size; ++i) {
      if (below(4) == 0) {
        live[i] = 1;
        continue;
      }
      for (size_t more = 1 + below(2); more > 0; --more) {
        const size_t kind = below(6);
        if (kind == 0) {
          graph.needs_anybody(i);
          needs[i].push_back(everybody);
        } else if (kind < 4) {
          const size_t other = below(size);
          graph.needs(i, other);
          needs[i].push_back({other});
        } else {
          const size_t set = below(sets.size());
          graph.needs_one_of(i, set, -1, [&] {
            return Members(std::vector<int>(sets[set].begin(), sets[set].end()));
          });
          needs[i].push_back(sets[set]);
        }
      }
    }
    plain = live;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < size; ++i) {
        const bool helped = std::all_of(needs[i].begin(), needs[i].end(), [&](const auto& some) {
          return std::any_of(some.begin(), some.end(), [&](size_t one) { return plain[one]; });
        });
        if (plain[i] || !helped) continue;
        plain[i] = 1;
        changed = true;
      }
    }
    graph.spread(live);
    ASSERT_EQ(live, plain) << "round " << round;
  }
}

TEST(CausesLarge, TheCircleWithTheSmallestRankIsFound) {
  EXPECT_TRUE(WaitGraph::circle({}).empty());
  EXPECT_TRUE(WaitGraph::circle({1, 2, -1}).empty());
  EXPECT_EQ(WaitGraph::circle({0}), std::vector<int>{0});
  // 0 leads into 5, 6; the other circle is 1, 3, 2.
  EXPECT_EQ(WaitGraph::circle({5, 3, 1, 2, -1, 6, 5}), (std::vector<int>{1, 3, 2}));
}

}  // namespace
}  // namespace headway::launcher
