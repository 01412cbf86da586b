// Grids: ranks and coordinates against plain arithmetic, and lengths against a search of all.
#include "objects/grid.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <tuple>
#include <vector>

namespace headway::objects {
namespace {

TEST(Grid, RanksAndCoordinates) {
  const int lengths[] = {3, 1, 4, 2}, periods[] = {0, 1, 5, 0};
  Grid* grid = Grid::make(4, lengths, periods);
  ASSERT_NE(grid, nullptr);
  EXPECT_EQ(grid->dimensions(), 4);
  EXPECT_EQ(grid->volume(), 24);
  EXPECT_FALSE(grid->periodic(0));
  EXPECT_TRUE(grid->periodic(2));
  int rank = 0;
  for (int a = 0; a < 3; ++a) {
    for (int c = 0; c < 4; ++c) {
      for (int d = 0; d < 2; ++d, ++rank) {
        int at[4] = {-1, -1, -1, -1};
        grid->find_coordinates(rank, at);
        EXPECT_EQ(std::vector<int>(at, at + 4), (std::vector<int>{a, 0, c, d}));
        EXPECT_EQ(grid->find_rank(at), rank);
        for (const int wrap : {-2'000'000'000, -8, -4, 4, 400}) {
          at[2] = c + wrap;
          EXPECT_EQ(grid->find_rank(at), rank) << wrap;
        }
        at[2] = c;
        at[3] = 2;
        EXPECT_EQ(grid->find_rank(at), -1);
        at[3] = -1;
        EXPECT_EQ(grid->find_rank(at), -1);
      }
    }
  }
  grid->retain();
  grid->release();
  grid->release();
}

// A step by a distance is a look at other coordinates.
TEST(Grid, Neighbours) {
  const int lengths[] = {2, 3, 5}, periods[] = {1, 0, 1};
  Grid* grid = Grid::make(3, lengths, periods);
  ASSERT_NE(grid, nullptr);
  for (int rank = 0; rank < 30; ++rank) {
    for (int dimension = 0; dimension < 3; ++dimension) {
      for (int distance = -11; distance <= 11; ++distance) {
        int at[3];
        grid->find_coordinates(rank, at);
        at[dimension] += distance;
        EXPECT_EQ(grid->find_neighbour(rank, dimension, distance), grid->find_rank(at));
      }
      EXPECT_EQ(grid->find_neighbour(rank, dimension, int64_t(INT32_MAX) + 1) < 0, dimension == 1);
    }
  }
  grid->release();
}

TEST(Grid, WithoutDimensions) {
  Grid* grid = Grid::make(0, nullptr, nullptr);
  ASSERT_NE(grid, nullptr);
  EXPECT_EQ(grid->volume(), 1);
  EXPECT_EQ(grid->find_rank(nullptr), 0);
  grid->release();
  EXPECT_EQ(volume_of(0, nullptr), 1);
}

TEST(Grid, Volumes) {
  const int fine[] = {46340, 46340}, large[] = {65536, 32768}, none[] = {3, 0},
            negative[] = {-1, 1};
  EXPECT_EQ(volume_of(2, fine), 46340 * 46340);
  EXPECT_EQ(volume_of(2, large), -1);
  EXPECT_EQ(volume_of(2, none), -1);
  EXPECT_EQ(volume_of(2, negative), -1);
}

// What counts, in this order: the range, the largest, and then what is smaller in falling order.
using Measure = std::tuple<int, int, std::vector<int>>;
Measure measure(const std::vector<int>& lengths) {
  return {lengths.front() - lengths.back(), lengths.front(), lengths};
}

// Looks at all falling factorizations; keeps the one with the least measure.
void search(int number, int bound, int count, std::vector<int>& so_far, std::vector<int>& best) {
  if (count == 0) {
    if (number == 1 && (best.empty() || measure(so_far) < measure(best))) best = so_far;
    return;
  }
  for (int factor = 1; factor <= bound && factor <= number; ++factor) {
    if (number % factor != 0) continue;
    so_far.push_back(factor);
    search(number / factor, factor, count - 1, so_far, best);
    so_far.pop_back();
  }
}

void compare_with_search(int places, int dimensions) {
  std::vector<int> so_far, best, got(dimensions, 0);
  search(places, places, dimensions, so_far, best);
  ASSERT_TRUE(balance(places, dimensions, got.data()));
  ASSERT_EQ(got, best) << places;
}

TEST(Balance, AgainstASearchOfAll) {
  for (int dimensions = 1; dimensions <= 5; ++dimensions) {
    for (int places = 1; places <= 5000; ++places) compare_with_search(places, dimensions);
  }
  for (const int places : {5040, 7560, 10'080, 16'384, 19'683, 30'030}) {
    for (int dimensions = 6; dimensions <= 8; ++dimensions) {
      compare_with_search(places, dimensions);
    }
  }
}

// A smaller largest length is no gain where the others are thin.
TEST(Balance, TheRangeCounts) {
  int a[] = {0, 0, 0};
  EXPECT_TRUE(balance(4620, 3, a));
  EXPECT_EQ(std::vector<int>(a, a + 3), (std::vector<int>{22, 15, 14})) << "21 20 11 is worse";
  int b[] = {0, 5, 0, 0, 0};
  EXPECT_TRUE(balance(5 * 3600, 5, b));
  EXPECT_EQ(std::vector<int>(b, b + 5), (std::vector<int>{10, 5, 10, 6, 6})) << "10 9 8 5 is worse";
}

TEST(Balance, KeepsWhatIsGiven) {
  int a[] = {0, 2, 0, 3};
  EXPECT_TRUE(balance(36, 4, a));
  EXPECT_EQ(std::vector<int>(a, a + 4), (std::vector<int>{3, 2, 2, 3}));
  int b[] = {6, 6};
  EXPECT_TRUE(balance(36, 2, b));
  int c[] = {6, 5};
  EXPECT_FALSE(balance(36, 2, c));
  int d[] = {0, 5};
  EXPECT_FALSE(balance(36, 2, d));
  EXPECT_EQ(d[0], 0) << "changed although it failed";
  int e[] = {0, -1};
  EXPECT_FALSE(balance(36, 2, e));
  int f[] = {65536, 65536, 0};
  EXPECT_FALSE(balance(36, 3, f));
  EXPECT_FALSE(balance(0, 2, e));
}

// Numbers on which a careless search would take for ever.
TEST(Balance, LargeNumbersEndSoon) {
  for (const int places : {INT32_MAX, 1 << 30, 2'095'133'040, 1'396'755'360, 46337 * 46337,
                           2 * 1'073'741'789, 1'102'701'600, 1'073'741'789, 968'647'680}) {
    for (const int dimensions : {1, 2, 3, 4, 7, 12, 15, 16, 20, 25, 29, 30, 31, 32, 40}) {
      std::vector<int> got(dimensions, 0);
      ASSERT_TRUE(balance(places, dimensions, got.data()));
      int64_t product = 1;
      for (int i = 0; i < dimensions; ++i) {
        product *= got[i];
        if (i > 0) {
          ASSERT_LE(got[i], got[i - 1]);
        }
      }
      ASSERT_EQ(product, places) << dimensions;
    }
  }
}

}  // namespace
}  // namespace headway::objects
