// Placements: who is on which node, blocks against a search of all of them, and graphs whose best
// placement is known; nothing is placed where nothing is won.
#include "objects/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace headway::objects {
namespace {

std::vector<int> listed(const base::Vec<int>& ranks) { return {ranks.begin(), ranks.end()}; }

bool is_permutation_of_all(const base::Vec<int>& ranks, int count) {
  std::vector<int> sorted = listed(ranks), all(static_cast<size_t>(count));
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  return sorted == all;
}

void add(base::Vec<Link>& links, int from, int to, int64_t weight = 1) {
  ASSERT_TRUE(links.push({from, to, weight}));
}

// Links of a grid by arithmetic of its own.
void add_all(const Grid& grid, base::Vec<Link>& links) {
  std::vector<int> at(static_cast<size_t>(grid.dimensions()));
  for (int place = 0; place < grid.volume(); ++place) {
    for (int i = 0; i < grid.dimensions(); ++i) {
      grid.find_coordinates(place, at.data());
      ++at[static_cast<size_t>(i)];
      const int next = grid.find_rank(at.data());
      if (next >= 0) add(links, place, next);
    }
  }
}

TEST(NodeMembers, AreNumberedByTheirFirstRanks) {
  const uint64_t ids[] = {9, 0, 4, 9, 0, 4, 4};
  NodeMembers nodes;
  ASSERT_TRUE(nodes.find(ids, 7));
  EXPECT_EQ(nodes.ranks(), 7);
  ASSERT_EQ(nodes.count(), 4);  // nobody shares a node by the number 0
  const std::vector<std::vector<int>> members = {{0, 3}, {1}, {2, 5, 6}, {4}};
  for (int node = 0; node < 4; ++node) {
    const int* first = nodes.members_of(node);
    EXPECT_EQ(std::vector<int>(first, first + nodes.size_of(node)), members[size_t(node)]);
    for (const int rank : members[size_t(node)]) EXPECT_EQ(nodes.node_of(rank), node);
  }
  EXPECT_TRUE(nodes.leave_a_choice());
}

TEST(NodeMembers, LeaveAChoiceOnlyBetweenSeveralNodesOfSeveral) {
  const uint64_t one[] = {7, 7, 7}, alone[] = {1, 2, 3}, unknown[] = {0, 0, 0};
  for (const uint64_t* ids : {one, alone, unknown}) {
    NodeMembers nodes;
    ASSERT_TRUE(nodes.find(ids, 3));
    EXPECT_FALSE(nodes.leave_a_choice());
    const int length = 3, period = 0;
    Grid* grid = Grid::make(1, &length, &period);
    base::Vec<int> ranks;
    ASSERT_TRUE(place_grid(nodes, *grid, ranks));
    EXPECT_TRUE(ranks.empty());
    grid->release();
  }
}

// Four nodes of four ranks, dealt out: a grid of 4 x 4 is cut into squares.
TEST(Placement, AGridIsCutIntoBlocks) {
  std::vector<uint64_t> ids;
  for (int rank = 0; rank < 16; ++rank) ids.push_back(static_cast<uint64_t>(1 + rank % 4));
  NodeMembers nodes;
  ASSERT_TRUE(nodes.find(ids.data(), 16));
  const int lengths[] = {4, 4}, periods[] = {0, 0};
  Grid* grid = Grid::make(2, lengths, periods);
  base::Vec<int> ranks;
  ASSERT_TRUE(place_grid(nodes, *grid, ranks));
  ASSERT_TRUE(is_permutation_of_all(ranks, 16));
  for (int place = 0; place < 16; ++place) {
    const int block = place / 8 * 2 + place % 4 / 2;
    EXPECT_EQ(nodes.node_of(ranks[size_t(place)]), block) << place;
  }
  base::Vec<Link> links;
  add_all(*grid, links);
  EXPECT_EQ(weight_across(nodes, links, ranks), 8);
  EXPECT_EQ(weight_across(nodes, links, {}), 12);  // columns
  grid->release();
}

// The cheapest block by trying all, each counted link by link.
void try_all(const Grid& grid, const base::Vec<Link>& links, int each, std::vector<int>& sides,
             int64_t& fewest) {
  const size_t at = sides.size();
  if (at < size_t(grid.dimensions())) {
    for (int side = 1; side <= grid.length(int(at)); ++side) {
      if (grid.length(int(at)) % side != 0) continue;
      sides.push_back(side);
      try_all(grid, links, each, sides, fewest);
      sides.pop_back();
    }
    return;
  }
  if (std::accumulate(sides.begin(), sides.end(), 1, std::multiplies<>()) != each) return;
  const auto block_of = [&](int place) {
    std::vector<int> where(size_t(grid.dimensions()));
    grid.find_coordinates(place, where.data());
    for (size_t i = 0; i < where.size(); ++i) where[i] /= sides[i];
    return where;
  };
  int64_t across = 0;
  for (const Link& link : links) across += block_of(link.from) != block_of(link.to);
  fewest = std::min(fewest, across);
}

TEST(Placement, BlocksAgainstASearchOfAll) {
  int moved = 0;
  const std::vector<std::vector<int>> shapes = {{4, 4},    {2, 6},       {12},  {2, 2, 3},
                                                {3, 4, 2}, {1, 8, 1, 2}, {6, 6}};
  for (const std::vector<int>& lengths : shapes) {
    const int dimensions = int(lengths.size());
    for (int mask = 0; mask < 1 << dimensions; ++mask) {
      std::vector<int> periods;
      for (int i = 0; i < dimensions; ++i) periods.push_back(mask >> i & 1);
      Grid* grid = Grid::make(dimensions, lengths.data(), periods.data());
      base::Vec<Link> links;
      add_all(*grid, links);
      for (const int each : {2, 3, 4, 6}) {
        const int count = grid->volume() / each;
        if (grid->volume() % each != 0 || count < 2) continue;
        std::vector<uint64_t> ids;
        for (int rank = 0; rank < grid->volume(); ++rank) ids.push_back(uint64_t(1 + rank % count));
        NodeMembers nodes;
        ASSERT_TRUE(nodes.find(ids.data(), grid->volume()));
        base::Vec<int> ranks;
        ASSERT_TRUE(place_grid(nodes, *grid, ranks));
        std::vector<int> sides;
        int64_t fewest = INT64_MAX;
        try_all(*grid, links, each, sides, fewest);
        const int64_t before = weight_across(nodes, links, {});
        const int64_t now = weight_across(nodes, links, ranks);
        if (fewest != INT64_MAX) {
          EXPECT_EQ(now, std::min(before, fewest)) << lengths[0];
        }
        if (ranks.empty()) continue;
        ++moved;
        EXPECT_LT(now, before);
        EXPECT_TRUE(is_permutation_of_all(ranks, grid->volume()));
      }
      grid->release();
    }
  }
  EXPECT_GT(moved, 20);
}

TEST(Placement, RanksThatLieRightStay) {
  const uint64_t ids[] = {1, 1, 2, 2, 3, 3};
  NodeMembers nodes;
  ASSERT_TRUE(nodes.find(ids, 6));
  const int length = 6, period = 1;
  Grid* grid = Grid::make(1, &length, &period);
  base::Vec<int> ranks;
  ASSERT_TRUE(place_grid(nodes, *grid, ranks));
  EXPECT_TRUE(ranks.empty());
  grid->release();
}

TEST(Placement, OnUnevenNodesAGridIsPlacedByItsLinks) {
  const uint64_t ids[] = {1, 2, 1, 2, 1, 2, 1, 1};  // five and three
  NodeMembers nodes;
  ASSERT_TRUE(nodes.find(ids, 8));
  const int length = 8, period = 0;
  Grid* grid = Grid::make(1, &length, &period);
  base::Vec<Link> links;
  add_all(*grid, links);
  base::Vec<int> ranks;
  ASSERT_TRUE(place_grid(nodes, *grid, ranks));
  ASSERT_TRUE(is_permutation_of_all(ranks, 8));
  EXPECT_EQ(weight_across(nodes, links, ranks), 1);
  grid->release();
}

TEST(Placement, HeavyLinksStayWithinNodes) {
  const uint64_t ids[] = {1, 1, 2, 2, 3, 3};
  NodeMembers nodes;
  ASSERT_TRUE(nodes.find(ids, 6));
  base::Vec<Link> links;
  // Pairs far from each other, on a ring of light links; and one to itself, which weighs nothing.
  for (int place = 0; place < 6; ++place) add(links, place, (place + 1) % 6);
  for (int place = 0; place < 3; ++place) add(links, place, place + 3, 100);
  add(links, 2, 2, 1000);
  base::Vec<int> ranks;
  ASSERT_TRUE(place_links(nodes, links, ranks));
  ASSERT_TRUE(is_permutation_of_all(ranks, 6));
  for (int place = 0; place < 3; ++place) {
    EXPECT_EQ(nodes.node_of(ranks[size_t(place)]), nodes.node_of(ranks[size_t(place) + 3]));
  }
}

TEST(Placement, OfRandomGraphsIsNeverWorse) {
  const unsigned seed = 20261130;
  printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const auto below = [&](int bound) { return int(random() % unsigned(bound)); };
  int won = 0;
  for (int round = 0; round < 300; ++round) {
    const int places = 2 + below(14);
    std::vector<uint64_t> ids;
    for (int rank = 0; rank < places; ++rank) ids.push_back(uint64_t(below(4)));
    NodeMembers nodes;
    ASSERT_TRUE(nodes.find(ids.data(), places));
    base::Vec<Link> links;
    for (int i = below(40); i > 0; --i) add(links, below(places), below(places), below(9));
    base::Vec<int> ranks;
    ASSERT_TRUE(place_links(nodes, links, ranks));
    if (ranks.empty()) continue;
    ++won;
    EXPECT_TRUE(is_permutation_of_all(ranks, places)) << round;
    EXPECT_LT(weight_across(nodes, links, ranks), weight_across(nodes, links, {})) << round;
  }
  EXPECT_GT(won, 50);
}

}  // namespace
}  // namespace headway::objects
