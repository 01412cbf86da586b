// Broadcasts and reductions that go in pieces between nodes of several ranks, played in one process
// in any order that a seed makes (HEADWAY_TEST_SEED, HEADWAY_TEST_SEEDS). Operations do not
// commute.
#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "collectives/chain.h"
#include "collectives/pieces.h"
#include "collectives/schedule_test_world.h"

namespace headway::collectives {
namespace {

using Values = std::vector<int64_t>;

Values values(size_t one, int count) {
  Values all(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) all[size_t(i)] = int64_t(one * 1'000'003 + size_t(i) * 7919 + 1);
  return all;
}
Data data_of(Values& all) { return {all.data(), all.size(), World::type()}; }

struct Shape {
  int nodes, each;
};
// One node, too, and what is no power of two.
constexpr Shape shapes[] = {{2, 1}, {3, 1}, {5, 1}, {8, 1}, {1, 3}, {2, 3}, {4, 2}, {3, 4}, {2, 5}};
// Less than a rank's each; a piece and one element more; five pieces.
constexpr int counts[] = {0, 1, 5, 300, 2048, 2049, 9001};

// body(world, count, root), in each world.
template <class Body>
void everywhere(Algorithm forced, Body&& body) {
  const uint64_t first = from_environment("HEADWAY_TEST_SEED", 1);
  const uint64_t seeds = from_environment("HEADWAY_TEST_SEEDS", 3);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    for (const Shape& shape : shapes) {
      const int ranks = shape.nodes * shape.each;
      for (const int count : counts) {
        for (int root = 0; root < ranks; ++root) {
          SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << shape.nodes << " x "
                                          << shape.each << ", " << count << ", root " << root);
          World world(ranks, 0, forced, seed * 1000 + uint64_t(count), shape.each);
          body(world, count, root);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(Pieces, OfABroadcastComeInTheirPlaces) {
  everywhere(Algorithm::chain, [](World& world, int count, int root) {
    std::vector<Values> all(world.ranks(), Values(size_t(count), -1));
    all[size_t(root)] = values(size_t(root), count);
    world.play([&](size_t one) { return bcast(world.place(one), data_of(all[one]), root); });
    for (size_t one = 0; one < world.ranks(); ++one) EXPECT_EQ(all[one], all[size_t(root)]);
  });
}

// What has gaps is packed first, and unpacked at last.
TEST(Pieces, OfABroadcastWithGapsComeInTheirPlaces) {
  for (const int count : {1, 2048, 2049, 9001}) {
    datatypes::Type* gaps = nullptr;
    ASSERT_EQ(datatypes::make_vector(datatypes::Form::narrow, count, 1, 2, *World::type(), gaps),
              Outcome::ok);
    for (int root = 0; root < 6; ++root) {
      SCOPED_TRACE(testing::Message() << count << ", root " << root);
      World world(6, 0, Algorithm::chain, uint64_t(root), 2);
      std::vector<Values> all(6, Values(size_t(count) * 2, -1));
      const Values sent = values(7, count);
      const auto has_gaps = [](size_t one) { return one % 2 == 0; };
      for (size_t i = 0; i < sent.size(); ++i)
        all[size_t(root)][has_gaps(size_t(root)) ? 2 * i : i] = sent[i];
      world.play([&](size_t one) {
        const Data flat{all[one].data(), uint64_t(count), World::type()};
        return bcast(world.place(one), has_gaps(one) ? Data{all[one].data(), 1, gaps} : flat, root);
      });
      for (size_t one = 0; one < 6; ++one) {
        for (size_t i = 0; i < sent.size(); ++i) {
          ASSERT_EQ(all[one][has_gaps(one) ? 2 * i : i], sent[i]) << "rank " << one << ", " << i;
          if (has_gaps(one)) {
            ASSERT_EQ(all[one][2 * i + 1], -1);
          }
        }
      }
    }
    gaps->release();
  }
}

// `built_in`: as with an operation of the library's own, which may leave its first partial result
// in the send buffer.
void check_reduce(World& world, int count, int root, bool in_place, bool built_in) {
  Reduction reduction = world.reduction();
  if (built_in) reduction.kernel = [](const void*, void*, uint64_t) { FAIL(); };
  std::vector<Values> in;
  Values out(size_t(count), -1);
  std::vector<Line> wanted(size_t(count), Line{1, 0});
  for (size_t one = 0; one < world.ranks(); ++one) {
    in.push_back(values(one, count));
    const auto* lines = reinterpret_cast<const Line*>(in[one].data());
    for (size_t i = 0; i < size_t(count); ++i) wanted[i] = then(wanted[i], lines[i]);
  }
  const std::vector<Values> before = in;
  Values& result = in_place ? in[size_t(root)] : out;
  world.play([&](size_t one) {
    return reduce(world.place(one), data_of(in[one]), int(one) == root ? data_of(result) : Data(),
                  reduction, root);
  });
  const auto* lines = reinterpret_cast<const Line*>(result.data());
  for (size_t i = 0; i < size_t(count); ++i) ASSERT_EQ(lines[i], wanted[i]) << "element " << i;
  for (size_t one = 0; one < world.ranks(); ++one) {
    if (int(one) != root || !in_place) {
      EXPECT_EQ(in[one], before[one]);
    }
  }
}

TEST(Pieces, OfAReductionAreFoldedInRankOrder) {
  everywhere(Algorithm::halving, [](World& world, int count, int root) {
    check_reduce(world, count, root, false, false);
  });
}

TEST(Pieces, OfABuiltInReductionAreFoldedInRankOrder) {
  everywhere(Algorithm::halving, [](World& world, int count, int root) {
    check_reduce(world, count, root, false, true);
  });
}

TEST(Pieces, OfAReductionInPlaceAreFoldedInRankOrder) {
  everywhere(Algorithm::halving, [](World& world, int count, int root) {
    check_reduce(world, count, root, true, root % 2 == 0);
  });
}

// Who tells whom, from each rank's own view; `between`: from node to node.
struct Told {
  std::vector<std::pair<int, int>> between, beside;
};
Told told_in(const std::vector<uint64_t>& nodes, int root) {
  Told told;
  objects::Team team;
  team.size = int(nodes.size());
  std::vector<int> heard;
  std::vector<int> from(nodes.size());
  for (team.self = 0; team.self < team.size; ++team.self) {
    Chain chain;
    EXPECT_TRUE(chain.make(team, root, [&](int rank) { return nodes[size_t(rank)]; }));
    from[size_t(team.self)] = chain.from();
    const size_t before = told.between.size() + told.beside.size();
    if (chain.next() != Chain::nobody) told.between.emplace_back(team.self, chain.next());
    chain.each_beside([&](int rank) { told.beside.emplace_back(team.self, rank); });
    EXPECT_EQ(chain.passes_on(), told.between.size() + told.beside.size() > before);
  }
  for (const auto& [teller, hearer] : told.between) {
    EXPECT_EQ(from[size_t(hearer)], teller);
    heard.push_back(hearer);
  }
  for (const auto& [teller, hearer] : told.beside) {
    EXPECT_EQ(from[size_t(hearer)], teller);
    heard.push_back(hearer);
  }
  // Everybody but the root hears once.
  EXPECT_EQ(from[size_t(root)], Chain::nobody);
  std::sort(heard.begin(), heard.end());
  EXPECT_EQ(std::set<int>(heard.begin(), heard.end()).size(), nodes.size() - 1);
  EXPECT_EQ(heard.size(), nodes.size() - 1);
  EXPECT_EQ(std::count(heard.begin(), heard.end(), root), 0);
  return told;
}

TEST(Chain, EntersEachNodeOnce) {
  const std::vector<uint64_t> layouts[] = {{5, 5, 9, 9, 3, 3}, {5, 9, 5, 9},       {5, 9, 3},
                                           {5, 5, 5},          {5, 9, 9, 9, 5, 3}, {7, 5, 7, 7, 7}};
  for (const std::vector<uint64_t>& nodes : layouts) {
    for (int root = 0; root < int(nodes.size()); ++root) {
      const Told told = told_in(nodes, root);
      EXPECT_EQ(told.between.size(), std::set<uint64_t>(nodes.begin(), nodes.end()).size() - 1);
      for (const auto& [teller, hearer] : told.between)
        EXPECT_NE(nodes[size_t(teller)], nodes[size_t(hearer)]);
      for (const auto& [teller, hearer] : told.beside)
        EXPECT_EQ(nodes[size_t(teller)], nodes[size_t(hearer)]);
    }
  }
}

// Of two jobs, each of which knows its own nodes, all ranks have to come to the same chain.
TEST(Chain, GoesByRanksWhereANodeIsNotKnown) {
  for (int root = 0; root < 4; ++root) {
    const Told one = told_in({5, 5, 0, 0}, root), other = told_in({0, 0, 8, 8}, root);
    EXPECT_EQ(one.between, other.between);
    EXPECT_EQ(one.between.size(), 3u);
    EXPECT_TRUE(one.beside.empty() && other.beside.empty());
  }
}

std::vector<uint64_t> lengths_of(const Pieces& pieces) {
  std::vector<uint64_t> all;
  for (uint64_t i = 0; i < pieces.count(); ++i) all.push_back(pieces.length(i));
  return all;
}

TEST(Pieces, CoverTheMessage) {
  EXPECT_EQ(lengths_of(Pieces(0)), std::vector<uint64_t>{});
  EXPECT_EQ(lengths_of(Pieces(1)), std::vector<uint64_t>{1});
  EXPECT_EQ(lengths_of(Pieces(16384)), std::vector<uint64_t>{16384});
  EXPECT_EQ(lengths_of(Pieces(16385)), (std::vector<uint64_t>{16368, 17}));
  EXPECT_EQ(lengths_of(Pieces(40000)), (std::vector<uint64_t>{16360, 16384, 7256}));
  EXPECT_EQ(lengths_of(Pieces(49152)), (std::vector<uint64_t>{16352, 16384, 16384, 32}));
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    const uint64_t bytes = random() >> (random() % 40 + 24);
    const Pieces pieces(bytes);
    ASSERT_LE(pieces.count(), 1025u) << bytes;
    uint64_t at = 0;
    for (uint64_t piece = 0; piece < pieces.count(); ++piece) {
      ASSERT_EQ(pieces.start(piece), at) << bytes;
      ASSERT_GT(pieces.length(piece), 0u) << bytes;
      at += pieces.length(piece);
    }
    ASSERT_EQ(at, bytes);
  }
}

// Ranks that do not agree on the length are told.
TEST(Pieces, OfAnotherNumberBeginWithAnotherLength) {
  std::set<uint64_t> first;
  for (uint64_t count = 2; count < 900; ++count) {
    const Pieces pieces(count * 16384);
    EXPECT_TRUE(first.insert(pieces.length(0)).second) << count;
  }
}

}  // namespace
}  // namespace headway::collectives
