// Closed pages against a plain model: whatever the order of arrival and touch, who reads a byte
// gets the message's byte, and everything else of the buffer stays as it was. One process; threads
// of the test are the program and the message thread. Seeds are printed and can be set.
#include "guard/guard_test_closed.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace headway::guard {
namespace {

TEST(GuardRange, WhatCanBeClosedOfABuffer) {
  char* base = reinterpret_cast<char*>(uintptr_t(1) << 20);
  EXPECT_EQ(Guard::around(base, page_bytes).pages, 1u);
  EXPECT_EQ(Guard::around(base, page_bytes).base, base);
  EXPECT_EQ(Guard::around(base + 1, page_bytes).pages, 2u);
  EXPECT_EQ(Guard::around(base + 1, 2 * page_bytes).base, base);
  EXPECT_EQ(Guard::around(base + 100, 10).pages, 1u);
  EXPECT_EQ(Guard::around(base, 0).pages, 0u);
}

TEST_P(Closed, WhoTouchesAPageWaitsForItAlone) {
  Memory memory(8);
  Region* region = guard_.close({memory.base, 8});
  ASSERT_NE(region, nullptr);
  EXPECT_TRUE(guard_.is_closed(memory.base + 3 * page_bytes + 5, 1));
  std::atomic<int> got{-1};
  std::thread reader([&] { got = uint8_t(memory.base[5 * page_bytes + 9]); });
  // Both threads need a core until a touch is heard of.
  for (int i = 0; i < 10'000 && guard_.counters.touched < 1 && got.load() < 0; ++i) usleep(1000);
  EXPECT_EQ(got.load(), -1) << "the page was not closed";
  EXPECT_FALSE(put(region, 3, 0, 4 * page_bytes));
  usleep(5'000);
  EXPECT_EQ(got.load(), -1) << "another page's data let it in";
  EXPECT_FALSE(put(region, 3, 5 * page_bytes, page_bytes));
  reader.join();
  EXPECT_EQ(got.load(), int(uint8_t(byte_of(3, 5 * page_bytes + 9))));
  EXPECT_FALSE(guard_.is_closed(memory.base + 5 * page_bytes, page_bytes));
  EXPECT_TRUE(guard_.is_closed(memory.base + 5 * page_bytes, page_bytes + 1));
  EXPECT_FALSE(put(region, 3, 4 * page_bytes, page_bytes));
  EXPECT_TRUE(put(region, 3, 6 * page_bytes, 2 * page_bytes));
  expect_message(memory.base, 3, memory.bytes);
  EXPECT_GE(guard_.counters.touched, 1u);
  EXPECT_EQ(guard_.counters.opened, 8u);
}

TEST_P(Closed, APageOpensWithItsLastByte) {
  Memory memory(2);
  Region* region = guard_.close({memory.base, 2});
  ASSERT_NE(region, nullptr);
  EXPECT_FALSE(put(region, 1, 0, page_bytes - 1));
  EXPECT_TRUE(guard_.is_closed(memory.base, 1));
  EXPECT_FALSE(put(region, 1, page_bytes - 1, 2));
  EXPECT_FALSE(guard_.is_closed(memory.base, page_bytes));
  EXPECT_TRUE(guard_.is_closed(memory.base + page_bytes, 1));
  EXPECT_TRUE(put(region, 1, page_bytes + 1, page_bytes - 1));
  expect_message(memory.base, 1, memory.bytes);
}

// Writes are not lost either: what a program writes into a page that was open stays.
TEST_P(Closed, WritesWaitToo) {
  Memory memory(4);
  Region* region = guard_.close({memory.base, 4});
  ASSERT_NE(region, nullptr);
  std::thread writer([&] { memory.base[2 * page_bytes] = 'W'; });
  usleep(10'000);
  EXPECT_TRUE(put_all(region, 9));
  writer.join();
  EXPECT_EQ(memory.base[2 * page_bytes], 'W');
  memory.base[2 * page_bytes] = byte_of(9, 2 * page_bytes);
  expect_message(memory.base, 9, memory.bytes);
}

// A range that was left watched would make a later trim and touch wait for ever.
TEST_P(Closed, NothingIsWatchedAfterwards) {
  Memory memory(4);
  Region* region = guard_.close({memory.base, 4});
  ASSERT_NE(region, nullptr);
  const uint32_t index = region->pool_index, generation = region->generation;
  EXPECT_EQ(guard_.find(index, generation), region);
  EXPECT_TRUE(put_all(region, 2));
  EXPECT_EQ(guard_.find(index, generation), nullptr) << "a late piece would find a region";
  stop_ = true;
  server_.join();  // nobody serves any more
  expect_unwatched(memory);
}

// The program drops a closed page, and another that has been opened: both read as zeros, nobody
// waits, and the message goes on.
TEST_P(Closed, PagesThatAreDropped) {
  Memory memory(8);
  Region* region = guard_.close({memory.base, 8});
  ASSERT_NE(region, nullptr);
  EXPECT_FALSE(put(region, 4, 0, 2 * page_bytes));
  EXPECT_EQ(madvise(memory.base + page_bytes, 2 * page_bytes, MADV_DONTNEED), 0);
  EXPECT_EQ(memory.base[page_bytes], 0) << "an open page that was dropped";
  if (!hears_of_drops()) {
    EXPECT_TRUE(put(region, 4, 2 * page_bytes, 6 * page_bytes));
    expect_message(memory.base, 4, page_bytes);
    expect_message(memory.base + 2 * page_bytes, 4, 6 * page_bytes, 2 * page_bytes);
    return;
  }
  EXPECT_EQ(memory.base[2 * page_bytes], 0) << "a closed page that was dropped";
  EXPECT_TRUE(put(region, 4, 2 * page_bytes, 6 * page_bytes));
  EXPECT_EQ(memory.base[2 * page_bytes + 5], 0);
  expect_message(memory.base + 3 * page_bytes, 4, 5 * page_bytes, 3 * page_bytes);
  EXPECT_EQ(guard_.counters.gone, 1u);
}

TEST_P(Closed, PagesThatAreUnmapped) {
  Memory memory(8);
  Region* region = guard_.close({memory.base, 8});
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(munmap(memory.base + 4 * page_bytes, 2 * page_bytes), 0);
  // Another mapping takes the place: it is nobody's message.
  char* stranger =
      static_cast<char*>(mmap(memory.base + 4 * page_bytes, 2 * page_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  stranger[0] = 's';
  EXPECT_TRUE(put_all(region, 5));
  EXPECT_EQ(stranger[0], 's');
  EXPECT_EQ(stranger[1], 0);
  expect_message(memory.base, 5, 4 * page_bytes);
  expect_message(memory.base + 6 * page_bytes, 5, 2 * page_bytes, 6 * page_bytes);
  EXPECT_EQ(guard_.counters.gone, 2u);
  expect_unwatched(memory);
}

// realloc moves a large buffer with its closed pages.
TEST_P(Closed, PagesThatMove) {
  Memory memory(8), room(16);
  Region* region = guard_.close({memory.base, 8});
  ASSERT_NE(region, nullptr);
  // A page that has been moved home is another mapping: the kernel moves none of them then.
  const bool moves_parts = GetParam() != Wish::minor;
  if (moves_parts) {
    EXPECT_FALSE(put(region, 6, page_bytes, page_bytes));
  }
  ASSERT_EQ(
      mremap(memory.base, memory.bytes, memory.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, room.base),
      room.base);
  // Nobody tells a mechanism without userfaultfd; it finds out by a touch or an arrival.
  EXPECT_TRUE(GetParam() == Wish::trap || guard_.is_closed(room.base + 3 * page_bytes, 1));
  std::thread reader([&] { EXPECT_EQ(room.base[2 * page_bytes], byte_of(6, 2 * page_bytes)); });
  usleep(10'000);
  EXPECT_FALSE(put(region, 6, 0, (moves_parts ? 1 : 2) * page_bytes));
  EXPECT_TRUE(put(region, 6, 2 * page_bytes, 6 * page_bytes));
  reader.join();
  expect_message(room.base, 6, memory.bytes);
  expect_unwatched(room);
}

// The program has freed a buffer whose message is still coming, and got some of its pages, open
// ones, for the next receive. Neither the end of the first nor a touch may open what the second
// closed.
TEST_P(Closed, OpenPagesOfOneAreClosedByTheNext) {
  Memory memory(8);
  Region* first = guard_.close({memory.base, 8});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(guard_.close({memory.base + 2 * page_bytes, 2}), nullptr) << "closed twice";
  EXPECT_FALSE(put(first, 1, 0, 4 * page_bytes));
  Region* second = guard_.close({memory.base + 2 * page_bytes, 2});
  ASSERT_NE(second, nullptr);
  std::atomic<int> got{-1};
  std::thread reader([&] { got = uint8_t(memory.base[3 * page_bytes]); });
  usleep(20'000);
  EXPECT_EQ(got.load(), -1) << "a touch opened it";
  EXPECT_TRUE(put(first, 1, 4 * page_bytes, 4 * page_bytes));
  usleep(20'000);
  EXPECT_EQ(got.load(), -1) << "the end of the first opened it";
  EXPECT_TRUE(put(second, 2, 0, 2 * page_bytes));
  reader.join();
  EXPECT_EQ(got.load(), int(uint8_t(byte_of(2, page_bytes))));
  expect_message(memory.base, 1, 2 * page_bytes);
  expect_message(memory.base + 2 * page_bytes, 2, 2 * page_bytes);
  expect_message(memory.base + 4 * page_bytes, 1, 4 * page_bytes, 4 * page_bytes);
}

// A heap that shrank and grew again is several mappings; the kernel fills one a call.
// Who looks for a page among many closed ranges does not look at all of them. (With a list of them
// a Waitall of thousands of receives grew with the square of their number.)
TEST_P(Closed, AmongManyAPageIsFoundAtOnce) {
  constexpr size_t most = 4000, few = most / 40;
  Memory memory(2 * most);
  std::vector<Region*> regions;
  const auto close_until = [&](size_t number) {
    for (size_t i = regions.size(); i < number; ++i) {
      regions.push_back(guard_.close({memory.base + 2 * i * page_bytes, 1}));
      ASSERT_NE(regions.back(), nullptr);
    }
  };
  // Of a hundred looks, the fastest of twenty: others may have the core meanwhile.
  const auto looking_ns = [&] {
    uint64_t best = ~uint64_t(0);
    for (int round = 0; round < 20; ++round) {
      const uint64_t from = base::now_ns();
      for (size_t i = 0; i < few; ++i) {
        const char* page = memory.base + 2 * (i * regions.size() / few) * page_bytes;
        EXPECT_TRUE(guard_.is_closed(page, 1));
        EXPECT_FALSE(guard_.is_closed(page + page_bytes, 1));
      }
      best = std::min(best, base::now_ns() - from);
    }
    return best;
  };
  close_until(few);
  const uint64_t among_few = looking_ns();
  close_until(most);
  EXPECT_LE(looking_ns(), 4 * among_few) << "ns, among " << most << " and " << few;
  for (size_t i = 0; i < regions.size(); ++i) EXPECT_TRUE(put_all(regions[i], i));
  expect_message(memory.base, 0, page_bytes);
}

// Time in which several are closed is shared among them: together they hide it once.
TEST_P(Closed, TheTimeOfSeveralIsShared) {
  Memory memory(8);
  Region* regions[4];
  for (size_t i = 0; i < 4; ++i) regions[i] = guard_.close({memory.base + 2 * i * page_bytes, 1});
  usleep(20'000);
  uint64_t shares = 0, longest = 0;
  for (Region* region : regions) {
    ASSERT_NE(region, nullptr);
    put_all(region, 1);
    shares += guard_.ended.share_ns;
    longest = std::max(longest, guard_.ended.closed_ns);
    EXPECT_LE(guard_.ended.share_ns, guard_.ended.closed_ns);
  }
  EXPECT_GE(shares, 20'000'000u * 9 / 10);
  EXPECT_LE(shares, longest * 11 / 10);
  Region* alone = guard_.close({memory.base, 1});
  usleep(2000);
  put_all(alone, 2);
  EXPECT_GE(guard_.ended.share_ns, guard_.ended.closed_ns * 9 / 10);
}

TEST_P(Closed, ARangeOfSeveralMappings) {
  Memory memory(16);
  ASSERT_EQ(madvise(memory.base + 5 * page_bytes, 2 * page_bytes, MADV_DONTFORK), 0);
  Region* region = guard_.close({memory.base, 16});
  ASSERT_NE(region, nullptr);
  EXPECT_TRUE(put_all(region, 7));
  expect_message(memory.base, 7, memory.bytes);
  EXPECT_EQ(guard_.counters.gone, 0u);
}

TEST_P(Closed, MemoryThatCannotBeClosed) {
  Memory memory(4);
  ASSERT_EQ(lock_page(memory.base + page_bytes), 0);
  EXPECT_EQ(guard_.close({memory.base, 4}), nullptr);
  syscall(SYS_munlock, memory.base + page_bytes, page_bytes);
  EXPECT_EQ(guard_.close({}), nullptr);
  EXPECT_EQ(guard_.counters.refused, 1u);
  memory.base[0] = 1;  // nobody waits
}

// Random ranges in one buffer, filled in random pieces while threads read and write at random: each
// byte is the message's or what the program wrote itself, and bytes outside stay.
void run_random(Guard& guard, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  constexpr size_t total = 256;
  Memory memory(total);
  std::vector<char> expected(memory.base, memory.base + memory.bytes);
  struct Live {
    Region* region;
    uint64_t message;
    std::vector<std::pair<size_t, size_t>> pieces;
  };
  std::vector<Live> live;
  std::vector<bool> used(total);
  for (size_t page = random() % 8; page < total;) {
    const size_t pages = std::min<size_t>(1 + random() % 40, total - page);
    Live one{guard.close({memory.base + page * page_bytes, pages}), seed * 1000 + page, {}};
    ASSERT_NE(one.region, nullptr);
    const size_t size = pages * page_bytes;
    for (size_t at = 0; at < size;) {
      const size_t n = std::min<size_t>(size - at, random() % 3 ? 1 + random() % 9000 : 65536);
      one.pieces.emplace_back(at, n);
      at += n;
    }
    if (random() % 3) std::shuffle(one.pieces.begin(), one.pieces.end(), random);
    for (size_t i = 0; i < size; ++i) expected[page * page_bytes + i] = byte_of(one.message, i);
    live.push_back(std::move(one));
    page += pages + (random() % 2 ? random() % 5 : 0);
  }
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> readers;
  readers.reserve(2);
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&, t] {
      std::mt19937_64 mine(seed * 7 + t);
      for (int touch = 0; touch < 400; ++touch) {
        const size_t at = mine() % memory.bytes;
        const size_t n = std::min<size_t>(memory.bytes - at, 1 + mine() % 64);
        for (size_t i = at; i < at + n; ++i) {
          wrong += static_cast<volatile char*>(memory.base)[i] != expected[i];
        }
      }
    });
  }
  while (!live.empty()) {
    const size_t which = random() % live.size();
    Live& one = live[which];
    const auto [at, n] = one.pieces.back();
    one.pieces.pop_back();
    for (size_t i = at; i < at + n; ++i) one.region->view[i] = byte_of(one.message, i);
    const bool over = guard.arrived(one.region, at, n);
    ASSERT_EQ(over, one.pieces.empty());
    if (over) live.erase(live.begin() + long(which));
    if (random() % 16 == 0) usleep(50);
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(memcmp(memory.base, expected.data(), memory.bytes), 0);
}

TEST_P(Closed, RandomOrders) {
  const uint64_t end = base::now_ns() + 1'500'000'000;
  for (uint64_t seed = base_seed(); base::now_ns() < end && !HasFailure(); ++seed) {
    run_random(guard_, seed);
  }
  EXPECT_GT(guard_.counters.touched, 0u);
}

#if defined(HEADWAY_DEBUG)
TEST(GuardDeathTest, AWaitEndsOnce) {
  Guard guard;
  guard.begin_wait();
  guard.end_wait();
  EXPECT_DEATH(guard.end_wait(), "does not hold");
}
#endif

INSTANTIATE_TEST_SUITE_P(Every, Closed, testing::ValuesIn(every_wish), wish_name);

}  // namespace
}  // namespace headway::guard
