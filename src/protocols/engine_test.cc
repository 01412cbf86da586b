// Engines of one process against a plain model, in many settings.
#include "protocols/engine_test_world.h"

namespace headway::protocols {
namespace {

struct Total {
  Tally tally;
  EngineCounters engines;
  WireTally wires;
};

Total run(const Plan& plan, int seeds) {
  Total total;
  const uint64_t first = base_seed();
  for (uint64_t seed = first; seed < first + uint64_t(seeds); ++seed) {
    SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
    World world(plan, seed);
    for (int i = 0; i < plan.steps && !testing::Test::HasFailure(); ++i) world.step();
    if (!testing::Test::HasFailure()) world.finish();
    EXPECT_EQ(world.story(), "");
    const EngineCounters sum = world.sum();
    EXPECT_EQ(sum.garbage, 0u);
    if (!testing::Test::HasFailure()) {
      EXPECT_EQ(sum.messages_received, world.tally.receives) << "each message is counted once";
      EXPECT_EQ(sum.bytes_received, world.tally.bytes);
    }
    total.engines.pulls += sum.pulls;
    total.engines.pushes += sum.pushes;
    total.engines.streams += sum.streams;
    total.engines.claims += sum.claims;
    total.engines.helped += sum.helped;
    total.engines.handshakes += sum.handshakes;
    total.engines.unexpected += sum.unexpected;
    total.tally.receives += world.tally.receives;
    total.tally.truncated += world.tally.truncated;
    total.tally.cancelled_sends += world.tally.cancelled_sends;
    total.tally.cancelled_receives += world.tally.cancelled_receives;
    total.tally.left += world.tally.left;
    total.tally.matched_probes += world.tally.matched_probes;
    total.tally.received_now += world.tally.received_now;
    total.tally.received_now_beside += world.tally.received_now_beside;
    total.tally.received_arrived += world.tally.received_arrived;
    if (const Wires* wires = world.wires()) {
      EXPECT_TRUE(wires->are_empty()) << "frames that nobody took";
      total.wires.full += wires->tally.full;
      total.wires.started += wires->tally.started;
      total.wires.whole += wires->tally.whole;
      total.wires.pieces += wires->tally.pieces;
    }
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(total.tally.receives, 0u);
  EXPECT_GT(total.tally.truncated, 0u);
  EXPECT_GT(total.engines.unexpected, 0u);
  return total;
}

int many_seeds(int usual) {
  const char* given = getenv("HEADWAY_TEST_SEEDS");
  return given ? atoi(given) : usual;
}

TEST(Engine, TwoRanksInMpi) {
  const Total total = run({.ranks = 2, .waiting = true}, 12);
  EXPECT_GT(total.engines.streams, 0u);
  EXPECT_GT(total.tally.matched_probes, 0u);
}

TEST(Engine, TwoRanksThatComeAndGo) {
  const Total total = run({.ranks = 2, .away = true, .waiting = true}, 12);
  EXPECT_GT(total.engines.pulls, 0u);
  EXPECT_GT(total.engines.claims, 0u);
}

TEST(Engine, ReceivedAtOnce) {
  const Total total = run({.ranks = 2, .brief = true, .steps = 800, .longest = 4500}, 100);
  EXPECT_GT(total.tally.received_now, 150u);
  EXPECT_GT(total.tally.received_now_beside, 50u);
  EXPECT_GT(total.tally.received_arrived, 500u);
}

TEST(Engine, WithCancels) {
  const Total total = run({.ranks = 2, .away = true, .waiting = true, .cancels = true}, 20);
  EXPECT_GT(total.tally.cancelled_sends, 0u);
  EXPECT_GT(total.tally.cancelled_receives, 0u);
}

TEST(Engine, SendsThatLeaveACopy) {
  const Total total =
      run({.ranks = 2, .away = true, .waiting = true, .cancels = true, .leaves = true}, 40);
  EXPECT_GT(total.tally.left, 30u);
  EXPECT_GT(total.engines.pulls, 0u);
  run({.ranks = 4, .away = true, .leaves = true, .longest = 6000}, 10);
  run({.one_copy = false, .away = true, .leaves = true}, 5);
}

TEST(Engine, OverWiresThatDoAllTheyMay) {
  const Total total = run({.ranks = 2, .waiting = true, .wires = true}, many_seeds(40));
  EXPECT_GT(total.engines.streams, 0u);
  EXPECT_GT(total.wires.full, 1000u);
  EXPECT_GT(total.wires.started, 1000u);
  EXPECT_GT(total.wires.pieces, 1000u);
  EXPECT_GT(total.wires.whole, 1000u);
}

TEST(Engine, OverWiresWithCancels) {
  const Total total =
      run({.ranks = 3, .waiting = true, .cancels = true, .wires = true}, many_seeds(40));
  EXPECT_GT(total.tally.cancelled_sends, 0u);
  EXPECT_GT(total.tally.cancelled_receives, 0u);
}

TEST(Engine, OverWiresSendsThatLeaveACopy) {
  const Total total =
      run({.ranks = 2, .waiting = true, .cancels = true, .leaves = true, .wires = true},
          many_seeds(40));
  EXPECT_GT(total.tally.left, 30u);
}

TEST(Engine, OverWiresWithLittleMemory) {
  run({.ranks = 3, .unexpected_max = 64 << 10, .waiting = true, .wires = true}, many_seeds(40));
}

TEST(Engine, OverWiresReceivedAtOnce) {
  const Total total = run({.ranks = 2, .brief = true, .wires = true, .steps = 800, .longest = 4500},
                          many_seeds(40));
  EXPECT_GT(total.tally.received_arrived, 100u);
}

TEST(Engine, FourRanksAndWildcards) {
  run({.ranks = 4, .away = true, .waiting = true, .cancels = true, .longest = 6000}, 20);
}

TEST(Engine, WithoutOneCopy) {
  const Total total = run({.one_copy = false, .away = true, .cancels = true}, 10);
  EXPECT_EQ(total.engines.pulls + total.engines.pushes, 0u);
  EXPECT_GT(total.engines.streams, 0u);
}

// Copies fail: the messages must come through the segment instead.
TEST(Engine, OneCopyThatIsRefused) {
  const Total total = run({.away = true, .lost_pid = true, .steps = 400}, 10);
  EXPECT_GT(total.engines.pulls + total.engines.pushes, 0u);
}

// One rank copies, the other, which would help, may not.
TEST(Engine, HelpThatIsRefused) {
  const Total total = run(
      {.away = true, .waiting = true, .lost_helper = true, .steps = 120, .longest = 1 << 20}, 20);
  EXPECT_GT(total.engines.pulls + total.engines.pushes, 0u);
}

TEST(Engine, LittleMemoryForUnexpectedMessages) {
  const Total total = run({.unexpected_max = 4000, .away = true, .cancels = true}, 10);
  EXPECT_GT(total.engines.handshakes, 0u);
}

TEST(Engine, LongMessages) {
  const Total total = run({.away = true, .waiting = true, .steps = 120, .longest = 1 << 20}, 8);
  EXPECT_GT(total.engines.helped, 0u);
}

}  // namespace
}  // namespace headway::protocols
