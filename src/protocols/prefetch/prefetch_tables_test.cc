// What is known of messages that come again and again: pages of a message, predictions, origins.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "protocols/prefetch/prefetch.h"

namespace headway::protocols {
namespace {

const char* at(uintptr_t address) { return reinterpret_cast<const char*>(address); }

TEST(PrefetchGrid, PagesAreTheSenders) {
  struct {
    uint32_t first;
    uint64_t size, pages;
  } cases[] = {{0, 4096, 1}, {0, 4097, 2},    {1, 4097, 2}, {1, 4098, 3},      {4095, 4095, 1},
               {100, 50, 1}, {4080, 9000, 3}, {0, 1, 1},    {16, 1 << 20, 257}};
  for (const auto& one : cases) {
    const Grid grid{one.first < one.size ? one.first : uint32_t(one.size), one.size};
    EXPECT_EQ(grid.pages(), one.pages) << one.first << " " << one.size;
    EXPECT_EQ(grid.begin(0), 0u);
    EXPECT_EQ(grid.begin(grid.pages()), one.size);
    for (uint64_t page = 0; page < grid.pages(); ++page) {
      const uint64_t from = grid.begin(page), to = grid.begin(page + 1);
      ASSERT_LT(from, to);
      EXPECT_LE(to - from, Grid::page);
      EXPECT_EQ(grid.page_of(from), page);
      EXPECT_EQ(grid.page_of(to - 1), page);
      EXPECT_TRUE(grid.is_boundary(from) && grid.is_boundary(to));
      if (to - from > 1) {
        EXPECT_FALSE(grid.is_boundary(from + 1)) << from;
      }
    }
  }
}

TEST(PrefetchPredictions, AgreementsInARow) {
  Predictions known;
  const matching::Key key{2, 1, 7};
  EXPECT_EQ(known.find(at(0x1000), key, {}, 1), nullptr);
  for (uint32_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(known.note(at(0x1000), key, {}, 1, 55, 8000)->seen, i);
  }
  // Another origin, or another length, begins anew.
  EXPECT_EQ(known.note(at(0x1000), key, {}, 1, 56, 8000)->seen, 1u);
  EXPECT_EQ(known.note(at(0x1000), key, {}, 1, 56, 8000)->seen, 2u);
  EXPECT_EQ(known.note(at(0x1000), key, {}, 1, 56, 8001)->seen, 1u);
  // Other buffers, tags, communicators and senders are others.
  EXPECT_EQ(known.find(at(0x1008), key, {}, 1), nullptr);
  EXPECT_EQ(known.find(at(0x1000), {2, 1, 8}, {}, 1), nullptr);
  EXPECT_EQ(known.find(at(0x1000), {4, 1, 7}, {}, 1), nullptr);
  EXPECT_EQ(known.find(at(0x1000), key, {}, 2), nullptr);
  ASSERT_NE(known.find(at(0x1000), key, {}, 1), nullptr);
}

TEST(PrefetchPredictions, TagsOfCollectivesCountUp) {
  Predictions known;
  const matching::Traffic scatter{6, 0}, gather{4, 0};
  for (int tag = 0; tag < 5; ++tag) known.note(at(64), {3, 0, tag}, scatter, 0, 9, 5000);
  const Prediction* found = known.find(at(64), {3, 0, 77}, scatter, 0);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->seen, 5u);
  EXPECT_EQ(known.find(at(64), {3, 0, 77}, gather, 0), nullptr);
  EXPECT_EQ(known.find(at(64), {3, 0, 77}, {}, 0), nullptr);
}

// A count of an Alltoallv that changes by one does not make another message of it.
TEST(PrefetchPredictions, LengthsOfCollectivesMayChangeALittle) {
  Predictions known;
  const matching::Traffic alltoallv{9, 0};
  for (uint64_t size : {8000u, 8004u, 7100u, 7900u}) {
    known.note(at(64), {3, 0, 1}, alltoallv, 0, 9, size);
    EXPECT_EQ(known.find(at(64), {3, 0, 1}, alltoallv, 0)->size, size);
  }
  EXPECT_EQ(known.find(at(64), {3, 0, 1}, alltoallv, 0)->seen, 4u);
  EXPECT_EQ(known.note(at(64), {3, 0, 1}, alltoallv, 0, 9, 4000)->seen, 1u);
}

TEST(PrefetchOrigins, WhatMovesKeepsItsNumber) {
  Origins origins;
  Origin* origin = origins.take(at(0x10010), 50'000, 1);
  const uint32_t id = origins.id_of(*origin);
  Origins::place(*origin, at(0x10ff0), 50'100);
  EXPECT_EQ(origins.find(id, 1), origin);
  EXPECT_EQ(origin->grid.first, 16u);
  EXPECT_EQ(origin->grid.size, 50'100u);
  EXPECT_EQ(origins.find(at(0x10010), 50'000, 1), nullptr);
  EXPECT_NE(origins.take(at(0x10010), 50'000, 1), origin);
  EXPECT_EQ(origins.find(id, 1), origin);
}

TEST(PrefetchOrigins, NumbersStandForOneBufferAndOnePeer) {
  Origins origins;
  EXPECT_EQ(origins.find(1, 1), nullptr);
  std::set<uint32_t> ids;
  for (uint32_t peer = 0; peer < 10; ++peer) {
    for (uint64_t size : {5000u, 6000u}) {
      Origin* origin = origins.take(at(0x7000 + peer), size, peer);
      ASSERT_NE(origin, nullptr);
      const uint32_t id = origins.id_of(*origin);
      EXPECT_NE(id, 0u);
      EXPECT_TRUE(ids.insert(id).second);
      EXPECT_EQ(origins.find(id, peer), origin);
      EXPECT_EQ(origins.find(id, peer + 1), nullptr) << "it is not for others";
      EXPECT_EQ(origins.take(at(0x7000 + peer), size, peer), origin);
    }
  }
}

TEST(PrefetchOrigins, WhatIsReplacedIsNotFoundByItsNumber) {
  Origins origins;
  const uint32_t first = origins.id_of(*origins.take(at(0x10000), 5000, 1));
  Origin* kept = origins.take(at(0x20000), 5000, 1);
  kept->watched = true;
  const uint32_t kept_id = origins.id_of(*kept);
  for (uintptr_t i = 1; i < 100'000; ++i) {
    Origin* other = origins.take(at(0x100000 + i * 64), 5000, 1);
    if (other) {
      ASSERT_NE(origins.id_of(*other), first);
    }
  }
  EXPECT_EQ(origins.find(first, 1), nullptr);
  EXPECT_EQ(origins.find(kept_id, 1), kept);
  EXPECT_EQ(kept->address, at(0x20000));
}

}  // namespace
}  // namespace headway::protocols
