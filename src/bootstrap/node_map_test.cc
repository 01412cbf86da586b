#include "bootstrap/node_map.h"

#include <gtest/gtest.h>

#include <vector>

namespace headway::bootstrap {
namespace {

std::vector<int> nodes(const NodeMap& map, int ranks) {
  std::vector<int> result;
  for (int rank = 0; rank < ranks; ++rank) result.push_back(map.node_of(rank));
  return result;
}

TEST(NodeMap, BlocksOfRanks) {
  NodeMap map;
  ASSERT_TRUE(map.parse("(vector,(0,2,3))"));
  EXPECT_EQ(nodes(map, 6), (std::vector<int>{0, 0, 0, 1, 1, 1}));
}

TEST(NodeMap, RoundAndRound) {
  NodeMap map;
  ASSERT_TRUE(map.parse("(vector,(0,3,1))"));
  EXPECT_EQ(nodes(map, 7), (std::vector<int>{0, 1, 2, 0, 1, 2, 0}));
}

TEST(NodeMap, SeveralBlocks) {
  NodeMap map;
  ASSERT_TRUE(map.parse("(vector,(4,1,2),(0,2,1))"));
  EXPECT_EQ(nodes(map, 6), (std::vector<int>{4, 4, 0, 1, 4, 4}));
}

TEST(NodeMap, RanksOfOneNode) {
  NodeMap map;
  ASSERT_TRUE(map.parse("(vector,(0,2,3))"));
  EXPECT_EQ(map.beside(4, 6).first, 3);
  EXPECT_EQ(map.beside(4, 6).count, 3);
  EXPECT_EQ(map.beside(4, 5).count, 2) << "the last node is not full";
  ASSERT_TRUE(map.parse("(vector,(0,3,1))"));
  EXPECT_EQ(map.beside(5, 7).first, 2);
  EXPECT_EQ(map.beside(5, 7).count, 2);
  EXPECT_EQ(NodeMap().beside(0, 4).first, -1);
  EXPECT_EQ(NodeMap().beside(0, 4).count, 0);
}

TEST(RanksOfPmix, ListsAndRanges) {
  const auto parsed = [](const char* text) {
    Beside beside;
    EXPECT_TRUE(parse_ranks(text, beside)) << text;
    return std::vector<int>{beside.first, beside.count};
  };
  EXPECT_EQ(parsed("3"), (std::vector<int>{3, 1}));
  EXPECT_EQ(parsed("0,1,2"), (std::vector<int>{0, 3}));
  EXPECT_EQ(parsed("5,4"), (std::vector<int>{4, 2}));
  EXPECT_EQ(parsed("8-11,3"), (std::vector<int>{3, 5}));
  for (const char* bad : {"", ",", "1,", "a", "1-", "3-1", "1,,2", "1 2", "-1", "0-100000000"}) {
    Beside beside;
    EXPECT_FALSE(parse_ranks(bad, beside)) << bad;
    EXPECT_EQ(beside.first, -1) << bad;
  }
}

TEST(NodeMap, GarbageTellsNothing) {
  NodeMap map;
  for (const char* text :
       {"", "(", "(vector", "(vector)", "(vector,)", "(vector,())", "(vector,(0,1))",
        "(vector,(0,1,1)", "(vector,(0,1,1)))", "(vector,(0,1,1)) ", "(vector,(-1,1,1))",
        "(vector,(0,0,4))", "(vector,(0,1,0))", "(vector,(0,1,9999999999999))", "vector,(0,1,1)",
        "(vector,(a,b,c))"}) {
    ASSERT_TRUE(map.parse("(vector,(0,2,1))"));
    EXPECT_FALSE(map.parse(text)) << text;
    EXPECT_EQ(map.node_of(0), -1) << text;
  }
}

TEST(NodeMap, TooManyBlocks) {
  std::string text = "(vector";
  for (int i = 0; i < 200; ++i) text += ",(" + std::to_string(i) + ",1,1)";
  NodeMap map;
  EXPECT_FALSE(map.parse(text + ")"));
}

TEST(NodeMap, HugeNumbersDoNotOverflow) {
  NodeMap map;
  ASSERT_TRUE(map.parse("(vector,(0,100000000,100000000),(5,100000000,100000000))"));
  EXPECT_EQ(map.node_of(2147483647), 21);
  EXPECT_EQ(map.node_of(-1), -1);
}

}  // namespace
}  // namespace headway::bootstrap
