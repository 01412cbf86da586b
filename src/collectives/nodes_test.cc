// Which layouts count as nodes, who is whom on them, and what is chosen there.
#include "collectives/nodes.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "collectives/algorithms.h"

namespace headway::collectives {
namespace {

int each_of(const std::vector<uint64_t>& nodes) {
  return ranks_a_node(int(nodes.size()), [&](int rank) { return nodes[size_t(rank)]; });
}

TEST(Nodes, AreOfEquallyManyRanksSideBySide) {
  EXPECT_EQ(each_of({5, 5, 9, 9, 3, 3, 7, 7}), 2);
  EXPECT_EQ(each_of({5, 5, 5, 2, 2, 2}), 3);
  EXPECT_EQ(each_of({5, 5}), 2);
}

TEST(Nodes, OfOtherLayoutsAreNotSupposed) {
  EXPECT_EQ(each_of({5}), 1);
  EXPECT_EQ(each_of({5, 9, 3}), 1);              // one rank each
  EXPECT_EQ(each_of({5, 9, 5, 9}), 1);           // dealt out
  EXPECT_EQ(each_of({5, 5, 9}), 1);              // fewer on the last
  EXPECT_EQ(each_of({5, 5, 9, 3}), 1);           // fewer on others
  EXPECT_EQ(each_of({5, 9, 9, 9}), 1);           // fewer on the first
  EXPECT_EQ(each_of({5, 5, 9, 9, 9, 3}), 1);     // as many ranks, not side by side
  EXPECT_EQ(each_of({0, 0, 0, 0}), 1);           // known of nobody
  EXPECT_EQ(each_of({5, 5, 0, 0}), 1);           // of some
  EXPECT_EQ(each_of({5, 5, 5, 5, 9, 9, 9}), 1);  // of which none divides the ranks
}

TEST(Nodes, AreSupposedWhereTheyAreForced) {
  EXPECT_EQ(supposed_ranks_a_node(1), 1);
  EXPECT_EQ(supposed_ranks_a_node(2), 2);
  EXPECT_EQ(supposed_ranks_a_node(5), 5);
  EXPECT_EQ(supposed_ranks_a_node(6), 2);
  EXPECT_EQ(supposed_ranks_a_node(8), 2);
  EXPECT_EQ(supposed_ranks_a_node(9), 3);
}

// What one rank sends in a step, another one expects in that step; and in all steps each rank
// meets each other node, and each place beside it, once.
TEST(Nodes, MeetEachOtherOnce) {
  for (const int each : {1, 2, 3, 4}) {
    for (const int count : {1, 2, 3, 5}) {
      objects::Team team;
      team.size = each * count;
      for (team.self = 0; team.self < team.size; ++team.self) {
        const Nodes here(team, each);
        EXPECT_EQ(here.rank_of(here.node, here.place), team.self);
        std::set<int> met{here.node};
        for (int step = 1; step < count; ++step) {
          objects::Team there = team;
          there.self = here.rank_of(here.node_after(step), here.place);
          EXPECT_EQ(Nodes(there, each).node_before(step), here.node);
          EXPECT_TRUE(met.insert(here.node_after(step)).second);
        }
        std::set<int> beside{here.place};
        for (int step = 1; step < each; ++step) {
          objects::Team there = team;
          there.self = here.rank_of(here.node, here.place_after(step));
          EXPECT_EQ(Nodes(there, each).place_before(step), here.place);
          EXPECT_TRUE(beside.insert(here.place_after(step)).second);
        }
      }
    }
  }
}

TEST(Choice, FollowsTheNodes) {
  const Forced none;
  const auto chosen = [&](Kind kind, uint64_t bytes, Sharing sharing, int ranks = 8) {
    return choose(none, kind, ranks, bytes, sharing);
  };
  EXPECT_EQ(chosen(Kind::alltoall, 8, Sharing::nodes), Algorithm::bruck);
  EXPECT_EQ(chosen(Kind::alltoall, 512, Sharing::nodes), Algorithm::by_node);
  EXPECT_EQ(chosen(Kind::alltoall, 4 << 10, Sharing::nodes), Algorithm::by_node);
  EXPECT_EQ(chosen(Kind::alltoall, 4 << 10, Sharing::apart), Algorithm::direct);
  EXPECT_EQ(chosen(Kind::alltoall, 4 << 10, Sharing::crowded), Algorithm::direct);
  // Many ranks, and what is longer, go as ever.
  EXPECT_EQ(chosen(Kind::alltoall, 4 << 10, Sharing::nodes, 65), Algorithm::pairwise);
  EXPECT_EQ(chosen(Kind::alltoall, 256 << 10, Sharing::nodes), Algorithm::pairwise);
  // What has no line for nodes goes as ever.
  EXPECT_EQ(chosen(Kind::bcast, 8, Sharing::nodes), chosen(Kind::bcast, 8, Sharing::apart));
  Forced forced;
  parse("alltoall=by_node,allgather=by_node", forced, [](const char*, uint64_t) {});
  EXPECT_EQ(choose(forced, Kind::alltoall, 4, 8, Sharing::apart), Algorithm::by_node);
  EXPECT_EQ(choose(forced, Kind::allgather, 2, 8, Sharing::apart), Algorithm::direct);  // refused
}

TEST(Choice, KnowsSeveralNodes) {
  const Forced none;
  const auto chosen = [&](Kind kind, uint64_t bytes, Sharing sharing, int ranks) {
    return choose(none, kind, ranks, bytes, sharing);
  };
  for (const Sharing several : {Sharing::nodes, Sharing::wire}) {
    EXPECT_EQ(chosen(Kind::bcast, 16 << 10, several, 8), Algorithm::binomial);
    EXPECT_EQ(chosen(Kind::bcast, (16 << 10) + 1, several, 8), Algorithm::chain);
    EXPECT_EQ(chosen(Kind::bcast, 32 << 10, several, 16), Algorithm::binomial);
    EXPECT_EQ(chosen(Kind::bcast, uint64_t(1) << 40, several, 16), Algorithm::chain);
    EXPECT_EQ(chosen(Kind::bcast, 1 << 20, several, 200), Algorithm::scatter_allgather);
    // Of very many what the table for one node has.
    EXPECT_EQ(chosen(Kind::bcast, 1 << 30, several, 1000), Algorithm::scatter_allgather);
    EXPECT_EQ(chosen(Kind::bcast, 1 << 20, several, 2), Algorithm::binomial);
    EXPECT_EQ(chosen(Kind::reduce, 1 << 20, several, 2), Algorithm::binomial);
    EXPECT_EQ(chosen(Kind::reduce, 16 << 10, several, 8), Algorithm::binomial);
    EXPECT_EQ(chosen(Kind::reduce, 64 << 10, several, 8), Algorithm::halving);
    EXPECT_EQ(chosen(Kind::reduce, 64 << 10, several, 1000), Algorithm::binomial);
    EXPECT_EQ(chosen(Kind::allreduce, 16 << 10, several, 2), Algorithm::doubling);
    EXPECT_EQ(chosen(Kind::allreduce, 16 << 10, several, 8), Algorithm::halving);
    EXPECT_EQ(chosen(Kind::gather, 8, several, 32), Algorithm::direct);
    EXPECT_EQ(chosen(Kind::scatter, 512, several, 32), Algorithm::direct);
    EXPECT_EQ(chosen(Kind::scatter, 512, several, 33), Algorithm::binomial);
    EXPECT_EQ(chosen(Kind::scan, 8, several, 8), chosen(Kind::scan, 8, Sharing::apart, 8));
  }
  EXPECT_EQ(chosen(Kind::alltoall, 512, Sharing::nodes, 8), Algorithm::by_node);
  EXPECT_EQ(chosen(Kind::alltoall, 512, Sharing::wire, 8), Algorithm::direct);
  for (const Sharing one : {Sharing::apart, Sharing::crowded}) {
    EXPECT_NE(chosen(Kind::bcast, 1 << 20, one, 8), Algorithm::chain);
    EXPECT_NE(chosen(Kind::reduce, 1 << 20, one, 8), Algorithm::halving);
  }
}

// By the first and the last line of a table, and by those in between, as they stand there.
TEST(Choice, FindsTheLinesOfItsKind) {
  const Forced none;
  const auto chosen = [&](Kind kind, uint64_t bytes, Sharing sharing, int ranks = 8) {
    return choose(none, kind, ranks, bytes, sharing);
  };
  using enum Sharing;
  EXPECT_EQ(chosen(Kind::barrier, 0, apart), Algorithm::dissemination);
  EXPECT_EQ(chosen(Kind::barrier, 0, crowded), Algorithm::direct);
  EXPECT_EQ(chosen(Kind::barrier, 0, crowded, 33), Algorithm::dissemination);
  EXPECT_EQ(chosen(Kind::bcast, 8, apart), Algorithm::binomial);
  EXPECT_EQ(chosen(Kind::bcast, 1 << 20, apart), Algorithm::scatter_allgather);
  EXPECT_EQ(chosen(Kind::bcast, 1 << 20, apart, 4), Algorithm::binomial);
  EXPECT_EQ(chosen(Kind::gather, 8, apart), Algorithm::binomial);
  EXPECT_EQ(chosen(Kind::gather, 4 << 10, apart), Algorithm::direct);
  EXPECT_EQ(chosen(Kind::allgather, 8, apart, 2), Algorithm::direct);
  EXPECT_EQ(chosen(Kind::allgather, 8, apart), Algorithm::bruck);
  EXPECT_EQ(chosen(Kind::allgather, 4 << 10, apart), Algorithm::ring);
  EXPECT_EQ(chosen(Kind::alltoallw, 8, apart, 33), Algorithm::pairwise);
  EXPECT_EQ(chosen(Kind::allreduce, 512, crowded), Algorithm::direct);
  EXPECT_EQ(chosen(Kind::allreduce, 4 << 10, crowded), Algorithm::doubling);
  EXPECT_EQ(chosen(Kind::allreduce, 8 << 10, crowded), Algorithm::halving);
  EXPECT_EQ(chosen(Kind::scan, 8, crowded), Algorithm::doubling);
  EXPECT_EQ(chosen(Kind::exscan, 8, apart), Algorithm::doubling);
  // None has a line for it.
  EXPECT_EQ(chosen(Kind::neighbor_alltoall, 8, crowded), Algorithm::direct);
}

}  // namespace
}  // namespace headway::collectives
