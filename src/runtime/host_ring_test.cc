#include "runtime/host_ring.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace headway::runtime {
namespace {

HostRing ring(const std::vector<uint64_t>& hosts) {
  HostRing out;
  for (const uint64_t each : hosts) EXPECT_TRUE(out.add(each));
  return out;
}

TEST(HostRing, OneHostWatchesNobody) {
  const HostRing alone = ring({5, 5, 5});
  EXPECT_EQ(alone.next(1), HostRing::nobody);
  EXPECT_EQ(alone.previous(1), HostRing::nobody);
}

TEST(HostRing, TwoHostsWatchEachOther) {
  const HostRing two = ring({9, 3, 9, 3, 9});
  EXPECT_EQ(two.next(0), 1u);
  EXPECT_EQ(two.next(2), 3u);
  EXPECT_EQ(two.next(4), 1u) << "the third of one, the first of the other";
  EXPECT_EQ(two.next(1), 0u);
  EXPECT_EQ(two.next(3), 2u);
  EXPECT_EQ(two.previous(0), 1u);
  EXPECT_EQ(two.previous(3), 0u);
}

// 64 ranks on 8 hosts, in whatever order: every host is watched by one other, by all its ranks,
// each of whom watches another of its ranks.
TEST(HostRing, EveryHostIsWatchedOnce) {
  for (const bool blocks : {true, false}) {
    std::vector<uint64_t> hosts;
    for (uint64_t rank = 0; rank < 64; ++rank) {
      hosts.push_back(((blocks ? rank / 8 : rank % 8) * 2654435761u) % 1009 + 1);
    }
    const HostRing all = ring(hosts);
    std::set<uint64_t> watched;
    std::set<uint32_t> targets;
    for (uint32_t rank = 0; rank < 64; ++rank) {
      const uint32_t target = all.next(rank);
      ASSERT_LT(target, 64u);
      EXPECT_NE(hosts[target], hosts[rank]);
      watched.insert(hosts[target]);
      targets.insert(target);
      EXPECT_EQ(hosts[all.previous(target)], hosts[rank]);
    }
    EXPECT_EQ(watched.size(), 8u);
    EXPECT_EQ(targets.size(), 64u);
  }
}

TEST(HostRing, WhoIsNotKnownIsLeftOut) {
  const HostRing some = ring({0, 7, 9, 0});
  EXPECT_EQ(some.next(0), HostRing::nobody);
  EXPECT_EQ(some.next(1), 2u);
  EXPECT_EQ(some.next(2), 1u);
}

}  // namespace
}  // namespace headway::runtime
