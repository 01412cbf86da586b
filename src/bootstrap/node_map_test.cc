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
