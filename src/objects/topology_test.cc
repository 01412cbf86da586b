// Topologies: the two lists of a rank, and that what one rank sends to another in order is what
// that one receives from it in order, in all small grids.
#include "objects/topology.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace headway::objects {
namespace {

std::vector<int> listed(Neighbours neighbours) {
  return {neighbours.ranks, neighbours.ranks + neighbours.count};
}

Topology* grid_of(const std::vector<int>& lengths, const std::vector<int>& periods, int rank) {
  return Topology::make(Grid::make(int(lengths.size()), lengths.data(), periods.data()), rank);
}

Graph* graph_of(const std::vector<std::vector<int>>& lists) {
  std::vector<int> index, edges;
  for (const std::vector<int>& list : lists) {
    edges.insert(edges.end(), list.begin(), list.end());
    index.push_back(int(edges.size()));
  }
  return Graph::make(int(lists.size()), index.data(), edges.data());
}

void fill(base::Vec<int>& to, const std::vector<int>& from) {
  for (const int number : from) ASSERT_TRUE(to.push(number));
}

TEST(Graph, KnowsTheNeighboursOfAll) {
  Graph* graph = graph_of({{1, 1, 2}, {}, {2, 0}});
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->nodes(), 3);
  EXPECT_EQ(graph->edges(), 5);
  EXPECT_EQ(graph->degree(0), 3);
  EXPECT_EQ(graph->degree(1), 0);
  EXPECT_EQ(graph->degree(2), 2);
  EXPECT_EQ(graph->neighbours_of(2)[0], 2);
  EXPECT_EQ(graph->neighbours_of(2)[1], 0);
  EXPECT_EQ(graph->index()[1], 3);
  graph->release();
}

TEST(Graph, IsSymmetricIfAllNameEachOtherEquallyOften) {
  const struct {
    std::vector<std::vector<int>> lists;
    bool symmetric;
  } rows[] = {
      {{{}}, true},
      {{{0, 0}}, true},  // to itself
      {{{1}, {0}}, true},
      {{{1}, {}}, false},
      {{{1, 1}, {0}}, false},
      {{{1, 1}, {0, 0}}, true},
      {{{1}, {2}, {0}}, false},  // each is named once, but round a ring
      {{{1, 2}, {2, 0}, {0, 1}}, true},
  };
  for (const auto& row : rows) {
    Graph* graph = graph_of(row.lists);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(graph->is_symmetric(), row.symmetric) << row.lists.size();
    graph->release();
  }
}

TEST(Topology, OfAGridHasTheRankBelowAndTheOneAbove) {
  Topology* inner = grid_of({3, 4}, {0, 1}, 4);  // at 1, 0
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(inner->kind(), Topology::Kind::grid);
  EXPECT_NE(inner->grid(), nullptr);
  EXPECT_EQ(inner->graph(), nullptr);
  EXPECT_EQ(listed(inner->sources()), (std::vector<int>{0, 8, 7, 5}));
  EXPECT_EQ(listed(inner->targets()), listed(inner->sources()));
  EXPECT_TRUE(inner->fits_both_ways());
  inner->retain();
  inner->release();
  EXPECT_EQ(inner->targets()[1], 8);  // somebody still has it
  inner->release();
  Topology* edge = grid_of({3}, {0}, 2);
  ASSERT_NE(edge, nullptr);
  EXPECT_EQ(listed(edge->targets()), (std::vector<int>{1, no_neighbour}));
  edge->release();
  Topology* itself = grid_of({1, 1}, {1, 0}, 0);
  ASSERT_NE(itself, nullptr);
  EXPECT_EQ(listed(itself->targets()), (std::vector<int>{0, 0, no_neighbour, no_neighbour}));
  itself->release();
  Topology* nobody = grid_of({}, {}, 0);
  ASSERT_NE(nobody, nullptr);
  EXPECT_EQ(nobody->sources().count, 0);
  nobody->release();
}

// Between two ranks messages keep their order: the k-th block that goes is the k-th that is
// received, and of block s that has to be the one of place s ^ 1.
void expect_that_blocks_meet(const std::vector<int>& lengths, const std::vector<int>& periods) {
  std::vector<Topology*> all;
  const int volume = volume_of(int(lengths.size()), lengths.data());
  for (int rank = 0; rank < volume; ++rank) all.push_back(grid_of(lengths, periods, rank));
  for (int from = 0; from < volume; ++from) {
    for (int to = 0; to < volume; ++to) {
      std::vector<int> sent, received;
      const Topology& sender = *all[size_t(from)];
      const Topology& receiver = *all[size_t(to)];
      for (int edge = 0; edge < sender.targets().count; ++edge) {
        if (sender.targets()[edge] == to) sent.push_back(edge ^ 1);
      }
      for (int turn = 0; turn < receiver.sources().count; ++turn) {
        const int place = receiver.received(turn);
        if (receiver.sources()[place] == from) received.push_back(place);
      }
      EXPECT_EQ(sent, received) << from << " to " << to;
    }
  }
  for (Topology* one : all) one->release();
}

TEST(Topology, InEverySmallGridBlocksMeetTheirPlaces) {
  for (int shape = 0; shape < 27; ++shape) {
    for (int mask = 0; mask < 8; ++mask) {
      expect_that_blocks_meet({1 + shape % 3, 1 + shape / 3 % 3, 1 + shape / 9},
                              {mask & 1, mask >> 1 & 1, mask >> 2 & 1});
    }
  }
}

TEST(Topology, OfAGraphHasTheSameRanksOnBothSides) {
  Topology* topology = Topology::make(graph_of({{1}, {0, 2, 2}, {1, 1}}), 1);
  ASSERT_NE(topology, nullptr);
  EXPECT_EQ(topology->kind(), Topology::Kind::graph);
  EXPECT_NE(topology->graph(), nullptr);
  EXPECT_EQ(listed(topology->sources()), (std::vector<int>{0, 2, 2}));
  EXPECT_EQ(listed(topology->targets()), (std::vector<int>{0, 2, 2}));
  for (int turn = 0; turn < 3; ++turn) EXPECT_EQ(topology->received(turn), turn);
  EXPECT_TRUE(topology->fits_both_ways());
  topology->release();
  Topology* one_way = Topology::make(graph_of({{1}, {}}), 0);
  ASSERT_NE(one_way, nullptr);
  EXPECT_FALSE(one_way->fits_both_ways());
  one_way->release();
}

TEST(Topology, OfEdgesHasBothSidesAndTheirWeights) {
  Edges edges;
  fill(edges.sources, {4, 4, 1});
  fill(edges.source_weights, {7, 0, 9});
  fill(edges.targets, {2});
  fill(edges.target_weights, {5});
  edges.weighted = true;
  EXPECT_FALSE(edges.empty());
  Topology* topology = Topology::make(std::move(edges));
  ASSERT_NE(topology, nullptr);
  EXPECT_EQ(topology->kind(), Topology::Kind::edges);
  EXPECT_EQ(topology->grid(), nullptr);
  EXPECT_EQ(listed(topology->sources()), (std::vector<int>{4, 4, 1}));
  EXPECT_EQ(listed(topology->targets()), (std::vector<int>{2}));
  EXPECT_TRUE(topology->is_weighted());
  EXPECT_EQ(topology->source_weights()[2], 9);
  EXPECT_EQ(topology->target_weights()[0], 5);
  EXPECT_EQ(topology->received(1), 1);
  topology->release();
  Topology* none = Topology::make(Edges());
  ASSERT_NE(none, nullptr);
  EXPECT_FALSE(none->is_weighted());
  EXPECT_EQ(none->sources().count + none->targets().count, 0);
  none->release();
}

}  // namespace
}  // namespace headway::objects
