// A sender that moves its message and a receiver that takes it, as two threads.
#include "transports/shm/movers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace headway::shm {
namespace {

TEST(Movers, TakenFirst) {
  MoverBoard board = {};
  Movers sender(&board), receiver(&board);
  const uint32_t generation = sender.open(2);
  EXPECT_NE(generation, 0u);
  EXPECT_EQ(receiver.take(2, generation, 4096), 4096u);
  EXPECT_FALSE(sender.move(2, 8192));
  EXPECT_EQ(receiver.take(2, generation, 4096), 4096u) << "it stays where it was";
}

TEST(Movers, MovedFirst) {
  MoverBoard board = {};
  Movers sender(&board), receiver(&board);
  const uint32_t generation = sender.open(0);
  EXPECT_TRUE(sender.move(0, 8192));
  EXPECT_FALSE(sender.move(0, 12288)) << "twice";
  EXPECT_EQ(receiver.take(0, generation, 4096), 8192u);
}

TEST(Movers, ForeignGenerationsChangeNothing) {
  MoverBoard board = {};
  Movers sender(&board), receiver(&board);
  const uint32_t old = sender.open(1);
  const uint32_t generation = sender.open(1);
  EXPECT_EQ(receiver.take(1, old, 4096), 4096u);
  EXPECT_EQ(receiver.take(1, 0, 4096), 4096u);
  EXPECT_EQ(receiver.take(mover_slots, generation, 4096), 4096u) << "no such slot";
  EXPECT_TRUE(sender.move(1, 8192)) << "the old generation took the new one";
}

// Either the sender moves and the receiver reads the copy, or it does not and the receiver reads
// the original.
TEST(Movers, OneOfBoth) {
  MoverBoard board = {};
  constexpr uint32_t rounds = 20'000;
  std::atomic<uint32_t> generation{0}, taken{0};
  std::atomic<uint64_t> where{0};
  std::thread receiver([&] {
    Movers movers(&board);
    for (uint32_t round = 1; round <= rounds; ++round) {
      uint32_t now;
      while ((now = generation.load()) < round) std::this_thread::yield();
      where = movers.take(3, now, 1);
      taken = round;
    }
  });
  Movers movers(&board);
  uint32_t moves = 0;
  for (uint32_t round = 1; round <= rounds; ++round) {
    const uint32_t now = movers.open(3);
    ASSERT_EQ(now, round);
    generation = now;
    for (uint32_t i = round % 64; i > 0; --i) (void)generation.load();
    const bool moved = movers.move(3, 2);
    moves += moved;
    while (taken.load() < round) std::this_thread::yield();
    ASSERT_EQ(where.load(), moved ? 2u : 1u) << "round " << round;
  }
  receiver.join();
  EXPECT_GT(moves, 0u);
}

}  // namespace
}  // namespace headway::shm
