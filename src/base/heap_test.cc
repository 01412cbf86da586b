// The library's own memory: blocks that do not overlap, threads, and the pool above it.
#include "base/heap.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/pool.h"
#include "base/vec.h"

namespace headway::base {
namespace {

struct Block {
  unsigned char* bytes;
  size_t size;
  unsigned char mark;
};

size_t random_size(std::mt19937_64& random) {
  switch (random() % 8) {
    case 0: return random() % 33;
    case 1: {  // edges of the size classes
      const size_t edge = size_t(1) << (4 + random() % 15);
      return edge - 1 + random() % 3;
    }
    case 2: return random() % 300'000;
    default: return random() % 2048;
  }
}

bool is_whole(const Block& block) {
  for (size_t i = 0; i < block.size; ++i) {
    if (block.bytes[i] != block.mark) return false;
  }
  return true;
}

// Allocates, fills, checks and frees at random. A block that another one overlaps is seen.
void churn(uint64_t seed, int steps, int* broken) {
  std::mt19937_64 random(seed);
  std::vector<Block> blocks;
  for (int i = 0; i < steps; ++i) {
    if (blocks.empty() || (blocks.size() < 200 && random() % 2)) {
      Block block{nullptr, random_size(random), static_cast<unsigned char>(random())};
      block.bytes = static_cast<unsigned char*>(heap_allocate(block.size));
      if (!block.bytes || reinterpret_cast<uintptr_t>(block.bytes) % 16 != 0) {
        ++*broken;
        return;
      }
      memset(block.bytes, block.mark, block.size);
      blocks.push_back(block);
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      *broken += !is_whole(blocks.back());
      heap_free(blocks.back().bytes, blocks.back().size);
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) {
    *broken += !is_whole(block);
    heap_free(block.bytes, block.size);
  }
}

TEST(Heap, ThreadsNeverShareABlock) {
  const size_t before = heap_in_use();
  int broken[4] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(churn, 100 + i, 20000, &broken[i]);
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(broken[i], 0) << "seed " << 100 + i;
  EXPECT_EQ(heap_in_use(), before);
}

// Blocks freed by one thread and taken by another.
TEST(Heap, BlocksMoveBetweenThreads) {
  const size_t before = heap_in_use();
  constexpr int rounds = 50, count = 200;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Block> blocks;
    std::thread maker([&] {
      std::mt19937_64 random(round);
      for (int i = 0; i < count; ++i) {
        Block block{nullptr, random_size(random), static_cast<unsigned char>(i)};
        block.bytes = static_cast<unsigned char*>(heap_allocate(block.size));
        memset(block.bytes, block.mark, block.size);
        blocks.push_back(block);
      }
    });
    maker.join();
    for (const Block& block : blocks) {
      ASSERT_TRUE(is_whole(block));
      heap_free(block.bytes, block.size);
    }
  }
  EXPECT_EQ(heap_in_use(), before);
}

TEST(Heap, FreedMemoryIsUsedAgain) {
  for (const size_t size : {1u, 100u, 5000u, 65536u, 65537u, 1000000u, 4u << 20}) {
    heap_free(heap_allocate(size), size);
    const size_t reserved = heap_reserved();
    for (int i = 0; i < 10000; ++i) {
      void* block = heap_allocate(size);
      ASSERT_NE(block, nullptr);
      heap_free(block, size);
    }
    EXPECT_EQ(heap_reserved(), reserved) << size;
  }
}

TEST(Heap, LargeBlocksGoBackToTheSystem) {
  const size_t reserved = heap_reserved();
  void* block = heap_allocate(20 << 20);
  ASSERT_NE(block, nullptr);
  EXPECT_GE(heap_reserved(), reserved + (20u << 20));
  heap_free(block, 20 << 20);
  EXPECT_EQ(heap_reserved(), reserved);
}

TEST(Heap, FewLargeBlocksAreKept) {
  const size_t reserved = heap_reserved();
  std::vector<void*> blocks;
  for (int i = 0; i < 20; ++i) {
    blocks.push_back(heap_allocate(3 << 20));
    ASSERT_NE(blocks.back(), nullptr);
    memset(blocks.back(), i, 3 << 20);
  }
  for (void* block : blocks) heap_free(block, 3 << 20);
  EXPECT_LE(heap_reserved(), reserved + (16u << 20));
}

// A message of some MB that is copied aside again and again: new pages, which would be zero, cost
// more than the copy.
TEST(Heap, BlocksAsLargeAsAMessageComeBackWithTheirPages) {
  for (const size_t bytes : {3'000'000, 5'756'597, 12'000'000, 16 << 20}) {
    auto* block = static_cast<char*>(heap_allocate(bytes));
    ASSERT_NE(block, nullptr);
    memset(block, 7, bytes);
    const size_t reserved = heap_reserved();
    heap_free(block, bytes);
    EXPECT_LE(heap_reserved(), reserved) << bytes;
    block = static_cast<char*>(heap_allocate(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block[bytes / 2], 7) << bytes;
    EXPECT_EQ(block[bytes - 1], 7) << bytes;
    heap_free(block, bytes);
  }
}

TEST(Heap, WhatNoMachineHasIsNullAndNotCounted) {
  const size_t before = heap_in_use(), reserved = heap_reserved();
  EXPECT_EQ(heap_allocate(size_t(1) << 60), nullptr);
  EXPECT_EQ(heap_in_use(), before);
  EXPECT_EQ(heap_reserved(), reserved);
  heap_free(nullptr, 100);
  EXPECT_EQ(heap_in_use(), before);
}

struct Thing {
  uint32_t pool_index = 0;
  uint32_t generation = 0;
  Thing* list_next = nullptr;
  bool taken = false;
  uint64_t value = 0;
};

TEST(Pool, StaleIdsAreSeen) {
  Pool<Thing> pool;
  struct Id {
    uint32_t index, generation;
    Thing* thing;
  };
  std::mt19937_64 random(3);
  std::vector<Id> live, stale;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || (live.size() < 1500 && random() % 5 < 3)) {
      Thing* thing = pool.take();
      ASSERT_NE(thing, nullptr);
      thing->value = uint64_t(i);
      live.push_back({thing->pool_index, thing->generation, thing});
    } else {
      std::swap(live[random() % live.size()], live.back());
      pool.give(live.back().thing);
      stale.push_back(live.back());
      live.pop_back();
    }
    ASSERT_EQ(pool.in_use(), live.size());
    if (!live.empty()) {
      const Id& id = live[random() % live.size()];
      ASSERT_EQ(pool.find(id.index, id.generation), id.thing);
      ASSERT_EQ(pool.at(id.index), id.thing);
    }
    if (!stale.empty()) {
      const Id& id = stale[random() % stale.size()];
      ASSERT_EQ(pool.find(id.index, id.generation), nullptr);
    }
  }
  EXPECT_GT(pool.capacity(), Pool<Thing>::slab_size) << "the pool never grew";
  EXPECT_EQ(pool.at(pool.capacity()), nullptr);
  EXPECT_EQ(pool.find(~0u, 1), nullptr);
}

TEST(Pool, NumbersAreSmallAndKept) {
  Pool<Thing> pool;
  Thing* first = pool.take();
  Thing* second = pool.take();
  EXPECT_EQ(first->pool_index, 0u);
  EXPECT_EQ(second->pool_index, 1u);
  pool.give(first);
  Thing* again = pool.take();
  EXPECT_EQ(again, first);
  EXPECT_EQ(again->pool_index, 0u);
  EXPECT_EQ(again->generation, 2u);
}

TEST(Vec, AgainstAStandardVector) {
  const size_t before = heap_in_use();
  {
    Vec<uint64_t> vec;
    std::vector<uint64_t> model;
    std::mt19937_64 random(5);
    for (int i = 0; i < 5000; ++i) {
      switch (random() % 6) {
        case 0:
        case 1:
        case 2:
          if (model.empty() || random() % 2) {
            ASSERT_TRUE(vec.push(uint64_t(i)));
            model.push_back(uint64_t(i));
          } else {
            const size_t from = random() % model.size();
            ASSERT_TRUE(vec.push(vec[from]));  // an item of the array itself
            model.push_back(model[from]);
          }
          break;
        case 3:
          if (!model.empty()) {
            vec.pop();
            model.pop_back();
          }
          break;
        case 4: {
          const size_t size = random() % 300;
          ASSERT_TRUE(vec.resize(size));
          model.resize(size);
          break;
        }
        default:
          if (random() % 50 == 0) {
            vec.clear();
            model.clear();
          }
      }
      ASSERT_EQ(vec.size(), model.size());
      ASSERT_EQ(vec.empty(), model.empty());
      ASSERT_TRUE(std::equal(model.begin(), model.end(), vec.begin()));
    }
    Vec<uint64_t> moved(std::move(vec));
    EXPECT_EQ(moved.size(), model.size());
    EXPECT_EQ(vec.size(), 0u);
  }
  EXPECT_EQ(heap_in_use(), before);
}

TEST(Heap, KnowsItsOwn) {
  char other[64] = {};
  EXPECT_FALSE(heap_holds(other, sizeof other));
  for (const size_t size : {size_t(40), size_t(20'000), size_t(300'000), size_t(20'000'000)}) {
    auto* block = static_cast<char*>(heap_allocate(size));
    ASSERT_TRUE(block);
    EXPECT_TRUE(heap_holds(block, 1)) << size;
    EXPECT_TRUE(heap_holds(block + size - 1, 1)) << size;
    EXPECT_TRUE(heap_holds(block - 1, 2)) << "a part of it is";
    heap_free(block, size);
    EXPECT_EQ(heap_holds(block, 1), size < 20'000'000) << "only long ones go back to the system";
  }
}

// More mappings than it can remember: then all may be its own.
TEST(Heap, RatherTooMuchThanTooLittle) {
  constexpr size_t size = 17 << 20;  // a mapping of its own, whose pages nobody touches
  char other[64] = {};
  std::vector<void*> blocks;
  for (int i = 0; i < 1100; ++i) {
    blocks.push_back(heap_allocate(size));
    ASSERT_TRUE(blocks.back());
  }
  EXPECT_TRUE(heap_holds(blocks.back(), size));
  EXPECT_TRUE(heap_holds(other, sizeof other));
  for (void* block : blocks) heap_free(block, size);
  EXPECT_FALSE(heap_holds(other, sizeof other)) << "until they are fewer";
}

// A handler of the program may have interrupted whoever holds a lock, and wait for data that a
// thread brings which needs memory itself.
std::atomic<uint64_t> wanted{0}, served{0};
std::atomic<bool> starved{false};
void await_service(int) {
  constexpr uint64_t limit_ns =
      60'000'000'000;  // who waits for a lock yields often: turns of others
  const uint64_t mine = wanted.fetch_add(1) + 1, start = now_ns();
  while (served.load() < mine && !starved) {
    sched_yield();
    if (now_ns() - start > limit_ns) starved = true;
  }
}

TEST(Heap, AHandlerThatInterruptedItMayWaitForOthers) {
  wanted = served = 0;
  starved = false;
  struct sigaction action {
  }, before{};
  action.sa_handler = await_service;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<bool> stop{false};
  const auto use = [](uint64_t round) {
    const size_t size = round % 3 == 0 ? 100'000 : 48;
    void* const first = heap_allocate(size);
    void* const second = heap_allocate(size);
    ASSERT_TRUE(first && second && first != second);
    memset(first, 1, 48);
    memset(second, 2, 48);
    heap_free(first, size);
    heap_free(second, size);
  };
  std::thread program([&] {
    for (uint64_t round = 0; !stop; ++round) use(round);
  });
  std::thread server([&] {
    while (!stop) {
      const uint64_t now = wanted.load();
      if (served.load() == now) {
        sched_yield();
        continue;
      }
      for (uint64_t round = 0; round < 6; ++round) use(round);
      served = now;
    }
  });
  const uint64_t start = now_ns();
  constexpr int fewest = 20;
  constexpr uint64_t enough_ns = 10'000'000'000, most_ns = 70'000'000'000;  // of all, of one
  bool ended = true;
  for (int i = 0; i < 300 && ended && !starved; ++i) {
    if (i >= fewest && now_ns() - start > enough_ns) break;
    const uint64_t seen = served.load(), asked = now_ns();
    pthread_kill(program.native_handle(), SIGUSR1);
    while (served.load() == seen && !starved && ended) {
      sched_yield();
      ended = now_ns() - asked < most_ns;
    }
  }
  EXPECT_TRUE(ended) << "neither served nor starved in 70 s: the handler never ran";
  stop = true;
  program.join();
  EXPECT_FALSE(starved) << "the handler waited for a minute";
  server.join();  // for ever, if the lock is held by a thread that has ended
  EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

#if defined(HEADWAY_DEBUG)
TEST(HeapDeathTest, WhatIsGivenBackIsABlockOfThatSize) {
  auto* block = static_cast<char*>(heap_allocate(100));
  ASSERT_NE(block, nullptr);
  EXPECT_DEATH(heap_free(block + 8, 100), "does not hold");
  EXPECT_DEATH(heap_free(block, size_t(1) << 60), "does not hold");
  heap_free(block, 100);
}
#endif

}  // namespace
}  // namespace headway::base
