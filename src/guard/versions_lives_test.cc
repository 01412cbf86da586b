// What a program does with memory whose writes are followed: it drops, unmaps, moves, grows and
// protects it, forks, frees it and gets it again; and the guard closes pages of it. Nothing of that
// fails, and no page is called unchanged that is not. Seeds are printed and can be set.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>

#include "base/clock.h"
#include "guard/guard_test_limits.h"
#include "guard/versions_test_followed.h"

namespace headway::guard {
namespace {

constexpr int read_write = PROT_READ | PROT_WRITE;

class FollowedLives : public Followed {};

char* map_at(char* place, size_t bytes) {
  return static_cast<char*>(
      mmap(place, bytes, read_write, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

TEST_P(FollowedLives, DroppedPages) {
  Memory memory(16);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  Copy copy(memory.base, 16);
  EXPECT_EQ(copy.take(versions_), 16);
  ASSERT_EQ(madvise(memory.base + 4 * page_bytes, 2 * page_bytes, MADV_DONTNEED), 0);
  EXPECT_EQ(copy.changed(versions_), (Pages{4, 5}));
  EXPECT_EQ(memory.base[4 * page_bytes], 0);
  memory.base[5 * page_bytes] = 1;
  EXPECT_EQ(copy.changed(versions_), (Pages{4, 5}));
  EXPECT_GE(copy.take(versions_), 2);
  EXPECT_EQ(copy.first_wrong(versions_), -1);
}

// Then the system frees whole page tables, too, and has nothing to say of their pages.
TEST_P(FollowedLives, DroppedPageTables) {
  constexpr size_t pages = 3072;
  Memory memory(pages);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  Copy copy(memory.base, pages);
  EXPECT_EQ(copy.take(versions_), int(pages));
  EXPECT_EQ(copy.take(versions_), 0);
  ASSERT_EQ(madvise(memory.base, memory.bytes, MADV_DONTNEED), 0);
  EXPECT_EQ(copy.changed(versions_).size(), pages);
  EXPECT_GE(copy.take(versions_), 0);
  EXPECT_EQ(copy.first_wrong(versions_), -1);
  EXPECT_EQ(memory.base[0], 0);
  memory.base[1000 * page_bytes] = 1;
  const Pages changed = copy.changed(versions_);
  EXPECT_EQ(std::count(changed.begin(), changed.end(), size_t(1000)), 1);
}

TEST_P(FollowedLives, MappedAnewAtTheSamePlace) {
  Memory memory(16);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  Copy copy(memory.base, 16);
  EXPECT_EQ(copy.take(versions_), 16);
  munmap(memory.base + 4 * page_bytes, 4 * page_bytes);
  EXPECT_EQ(copy.take(versions_), -1);
  // What is there still can be followed on its own.
  EXPECT_TRUE(versions_.use(memory.base, 4 * page_bytes));
  EXPECT_TRUE(versions_.look(memory.base, 4 * page_bytes));
  ASSERT_NE(map_at(memory.base + 4 * page_bytes, 4 * page_bytes), MAP_FAILED);
  EXPECT_EQ(copy.take(versions_), -1) << "what is pinned is not known";
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  EXPECT_EQ(copy.take(versions_), 16);
  // By signals, pages of zeros count as written until they have been.
  EXPECT_EQ(copy.take(versions_), by_signal() ? 4 : 0);
  EXPECT_EQ(copy.first_wrong(versions_), -1);
  // Without a look between.
  ASSERT_NE(map_at(memory.base + 6 * page_bytes, page_bytes), MAP_FAILED);
  if (by_signal()) {
    EXPECT_GE(copy.take(versions_), 1);
  } else {
    EXPECT_EQ(copy.take(versions_), -1);
    ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
    EXPECT_EQ(copy.take(versions_), 16);
  }
  EXPECT_EQ(copy.first_wrong(versions_), -1);
  for (size_t i = 4; i < 8; ++i) memory.base[i * page_bytes] = 1;
  copy.take(versions_);
  memory.base[6 * page_bytes] = 2;
  EXPECT_EQ(copy.changed(versions_), Pages{6});
}

// realloc of large blocks moves and grows mappings; it must go on working.
TEST_P(FollowedLives, MappingsThatMoveAndGrow) {
  if (by_signal()) GTEST_SKIP() << "their pages stay protected: only for who asks for it";
  Memory room(64);
  auto* base = static_cast<char*>(
      mmap(nullptr, 16 * page_bytes, read_write, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(base, 1, 16 * page_bytes);
  // A part of the mapping is used, all of it moves.
  ASSERT_TRUE(versions_.use(base + 4 * page_bytes, 4 * page_bytes));
  ASSERT_TRUE(versions_.look(base + 4 * page_bytes, 4 * page_bytes));
  char* moved = static_cast<char*>(
      mremap(base, 16 * page_bytes, 64 * page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, room.base));
  ASSERT_EQ(moved, room.base);
  std::memset(moved + page_bytes, 2, 60 * page_bytes);
  EXPECT_FALSE(versions_.look(base + 4 * page_bytes, 4 * page_bytes));
  ASSERT_TRUE(versions_.use(moved, 16 * page_bytes));
  Copy copy(moved, 16);
  EXPECT_EQ(copy.take(versions_), 16);
  // In place: what was added belongs to it.
  ASSERT_EQ(mremap(moved, 64 * page_bytes, 32 * page_bytes, 0), moved);
  EXPECT_EQ(copy.take(versions_), 0);
  ASSERT_EQ(mremap(moved, 32 * page_bytes, 64 * page_bytes, 0), moved);
  EXPECT_EQ(copy.take(versions_), 0);
  ASSERT_TRUE(versions_.use(moved + 16 * page_bytes, 40 * page_bytes));
  Copy rest(moved + 16 * page_bytes, 40);
  EXPECT_EQ(rest.take(versions_), 40);
  moved[50 * page_bytes] = 1;
  moved[2 * page_bytes] = 3;
  EXPECT_EQ(rest.changed(versions_), Pages{34});
  EXPECT_EQ(copy.changed(versions_), Pages{2});
  versions_.drop(base + 4 * page_bytes, 4 * page_bytes);
  versions_.drop(moved, 16 * page_bytes);
  EXPECT_EQ(rest.changed(versions_), Pages{34}) << "a mapping that others use stays followed";
  versions_.drop(moved + 16 * page_bytes, 40 * page_bytes);
  ASSERT_EQ(mremap(moved, 64 * page_bytes, 16 * page_bytes, 0), moved);
}

// Unchanged pages of one buffer come to lie where those of another were.
TEST_P(FollowedLives, OneBufferMovesOverAnother) {
  if (by_signal()) GTEST_SKIP() << "it cannot be told: only for who asks for it";
  Memory memory(16), other(16);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  ASSERT_TRUE(versions_.use(other.base, other.bytes));
  Copy copy(memory.base, 16), second(other.base, 16);
  memory.base[page_bytes] = 1;
  EXPECT_EQ(copy.take(versions_), 16);
  EXPECT_EQ(second.take(versions_), 16);
  ASSERT_EQ(
      mremap(memory.base, memory.bytes, memory.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, other.base),
      other.base);
  EXPECT_EQ(second.take(versions_), -1);
  ASSERT_TRUE(versions_.use(other.base, other.bytes));
  EXPECT_EQ(second.take(versions_), 16);
  EXPECT_EQ(second.first_wrong(versions_), -1);
  EXPECT_EQ(copy.take(versions_), -1);
  other.base[3 * page_bytes] = 4;
  EXPECT_EQ(second.changed(versions_), Pages{3});
}

TEST_P(FollowedLives, MemoryThatTheProgramProtects) {
  Memory memory(8);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  Copy copy(memory.base, 8);
  EXPECT_EQ(copy.take(versions_), 8);
  ASSERT_EQ(mprotect(memory.base + 2 * page_bytes, 4 * page_bytes, PROT_READ), 0);
  EXPECT_EQ(copy.changed(versions_), Pages{});
  ASSERT_EQ(mprotect(memory.base + 2 * page_bytes, 4 * page_bytes, read_write), 0);
  memory.base[3 * page_bytes] = 1;
  const Pages changed = copy.changed(versions_);
  EXPECT_EQ(std::count(changed.begin(), changed.end(), size_t(3)), 1);
  if (!by_signal()) {
    EXPECT_EQ(changed, Pages{3});
  }
  EXPECT_EQ(copy.first_wrong(versions_), -1);
}

TEST_P(FollowedLives, ForkedChildren) {
  Memory memory(16);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  Copy copy(memory.base, 16);
  EXPECT_EQ(copy.take(versions_), 16);
  memory.base[page_bytes] = 1;
  EXPECT_EQ(in_child([&] {
              memory.base[2 * page_bytes] = 'c';
              versions_.stop();
              memory.base[3 * page_bytes] = 'c';
              Versions own;  // nothing of the parent's may be disturbed
              if (own.start(nullptr, GetParam()) != Outcome::ok) return 2;
              if (!own.use(memory.base, memory.bytes)) return 3;
              Copy childs(memory.base, 16);
              if (childs.take(own) != 16) return 4;
              memory.base[5 * page_bytes] = 'c';
              if (childs.changed(own) != Pages{5}) return 5;
              own.stop();
              return 0;
            }),
            0);
  memory.base[4 * page_bytes] = 2;
  const Pages changed = copy.changed(versions_);
  // By signals, what a child might share cannot be told from what was dropped.
  for (const size_t page : {size_t(1), size_t(4)}) {
    EXPECT_EQ(std::count(changed.begin(), changed.end(), page), 1) << "page " << page;
  }
  if (!by_signal()) {
    EXPECT_EQ(changed, (Pages{1, 4}));
  }
  copy.take(versions_);
  EXPECT_EQ(copy.first_wrong(versions_), -1);
  memory.base[7 * page_bytes] = 3;
  const Pages later = copy.changed(versions_);
  EXPECT_EQ(std::count(later.begin(), later.end(), size_t(7)), 1);
}

// Blocks of the program's allocator come and go, share pages and mappings, and change at random;
// each has a copy of its own, that of one address lives on in the next block.
TEST_P(FollowedLives, BlocksOfAnAllocator) {
  if (by_signal()) GTEST_SKIP() << "realloc may move them";
  const uint64_t end = base::now_ns() + 1'500'000'000;
  for (uint64_t seed = base_seed(); base::now_ns() < end && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
    std::mt19937_64 random(seed);
    struct Block {
      char* base = nullptr;
      size_t size = 0;
      std::vector<char> copy;
      std::vector<uint32_t> versions;
      bool used = false;
    };
    std::vector<Block> blocks(6);
    const auto pages_of = [](const Block& block) { return Guard::around(block.base, block.size); };
    const auto change = [&](Block& block) {
      for (size_t i = 0; block.size && i < 4; ++i)
        block.base[random() % block.size] = char(random());
    };
    const auto leave = [&](Block& block) {
      if (block.used) versions_.drop(block.base, block.size);
      block.used = false;
    };
    const auto follow = [&](Block& block) {
      block.used = versions_.use(block.base, block.size);
      block.versions.assign(pages_of(block).pages, 0);
      block.copy.assign(block.size, 0);
    };
    // The pages that have changed come into the copy, which is then the block.
    const auto update = [&](Block& block) {
      if (!block.used || !versions_.look(block.base, block.size)) {
        leave(block);
        follow(block);
        return;
      }
      const Range range = pages_of(block);
      for (size_t i = 0; i < range.pages; ++i) {
        char* page = range.base + i * page_bytes;
        if (versions_.version(page) == block.versions[i]) continue;
        block.versions[i] = versions_.version(page);
        char* from = std::max(page, block.base);
        const size_t n = size_t(std::min(page + page_bytes, block.base + block.size) - from);
        std::memcpy(&block.copy[size_t(from - block.base)], from, n);
      }
      ASSERT_EQ(std::memcmp(block.copy.data(), block.base, block.size), 0);
    };
    for (int step = 0; step < 400 && !HasFailure(); ++step) {
      Block& block = blocks[random() % blocks.size()];
      const size_t size = 1 + random() % (random() % 2 ? 20'000 : 600'000);
      switch (random() % 8) {
        case 0:
          leave(block);
          std::free(block.base);
          block.base = static_cast<char*>(random() % 2 ? std::malloc(size) : std::calloc(1, size));
          block.size = size;
          follow(block);
          break;
        case 1: {
          if (random() % 2) leave(block);
          Block old = block;  // still used where it was
          // From here on only an address, also for the compiler.
          const volatile auto place = reinterpret_cast<uintptr_t>(old.base);
          block.base = static_cast<char*>(std::realloc(old.base, size));
          block.size = size;
          if (old.used) versions_.drop(reinterpret_cast<const char*>(place), old.size);
          follow(block);
          break;
        }
        default: change(block); [[fallthrough]];
        case 2:
        case 3:
          if (block.size) update(block);
      }
    }
    for (Block& block : blocks) {
      leave(block);
      std::free(block.base);
    }
  }
}

// ----------------------------------------------------------------------------- beside a guard

class FollowedAndClosed : public Closed {
 protected:
  void SetUp() override {
    Closed::SetUp();
    if (IsSkipped()) return;
    if (versions_.start(choice_.mechanism()) != Outcome::ok) {
      GTEST_SKIP() << "cannot be tested here: " << versions_.why();
    }
  }
  void TearDown() override {
    versions_.stop();
    Closed::TearDown();
  }
  Versions& versions_ = fresh_versions();
};

TEST_P(FollowedAndClosed, PagesCloseInAFollowedMapping) {
  Memory memory(32);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  Copy copy(memory.base, 32);
  Copy before(memory.base, 8), after(memory.base + 16 * page_bytes, 16);
  EXPECT_EQ(copy.take(versions_), 32);
  EXPECT_EQ(before.take(versions_), 8);
  EXPECT_EQ(after.take(versions_), 16);
  for (uint64_t message = 1; message < 4; ++message) {
    Region* region = guard_.close({memory.base + 8 * page_bytes, 8});
    ASSERT_NE(region, nullptr);
    EXPECT_FALSE(versions_.look(memory.base + 9 * page_bytes, page_bytes));
    EXPECT_FALSE(versions_.use(memory.base + 12 * page_bytes, page_bytes));
    EXPECT_EQ(before.take(versions_), 0) << "those beside it are followed all the same";
    EXPECT_EQ(after.take(versions_), 0);
    std::thread reader(
        [&] { EXPECT_EQ(memory.base[10 * page_bytes], byte_of(message, 2 * page_bytes)); });
    usleep(2'000);
    EXPECT_TRUE(put_all(region, message));
    reader.join();
    expect_message(memory.base + 8 * page_bytes, message, 8 * page_bytes);
    EXPECT_EQ(copy.take(versions_), 8);
    EXPECT_EQ(before.take(versions_), 0);
    memory.base[9 * page_bytes] = 'w';
    memory.base[page_bytes] = char(message);
    EXPECT_EQ(copy.changed(versions_), (Pages{1, 9}));
    copy.take(versions_);
    before.take(versions_);
    EXPECT_EQ(copy.first_wrong(versions_), -1);
  }
  // All of it is one mapping again.
  Memory room(64);
  EXPECT_EQ(
      mremap(memory.base, memory.bytes, 64 * page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, room.base),
      room.base);
}

TEST_P(FollowedAndClosed, MemoryThatWasClosedFirst) {
  Memory memory(32);
  Region* region = guard_.close({memory.base + 8 * page_bytes, 8});
  ASSERT_NE(region, nullptr);
  EXPECT_FALSE(put(region, 1, 0, 3 * page_bytes));
  EXPECT_FALSE(versions_.use(memory.base, memory.bytes)) << "some are closed";
  // An open page of a closed range is watched still where the range is.
  EXPECT_EQ(versions_.use(memory.base + 8 * page_bytes, page_bytes), GetParam() != Wish::missing);
  ASSERT_TRUE(versions_.use(memory.base, 8 * page_bytes));
  ASSERT_TRUE(versions_.look(memory.base, 8 * page_bytes));
  EXPECT_TRUE(guard_.is_closed(memory.base + 12 * page_bytes, 1));
  EXPECT_TRUE(put(region, 1, 3 * page_bytes, 5 * page_bytes));
  expect_message(memory.base + 8 * page_bytes, 1, 8 * page_bytes);
  EXPECT_TRUE(versions_.use(memory.base, memory.bytes));
}

// Receives into, sends from and writes to one buffer, at random. What did not change since it was
// taken is equal; messages arrive as ever.
TEST_P(FollowedAndClosed, RandomReceivesAndSends) {
  const uint64_t end = base::now_ns() + 1'500'000'000;
  for (uint64_t seed = base_seed(); base::now_ns() < end && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
    std::mt19937_64 random(seed);
    const size_t pages = 32 + random() % 64;
    Memory memory(pages);
    const bool used = versions_.use(memory.base, memory.bytes);
    ASSERT_TRUE(used);
    Copy copy(memory.base, pages), part(memory.base, pages / 2);
    for (int step = 0; step < 60 && !HasFailure(); ++step) {
      const size_t first = random() % pages, count = 1 + random() % (pages - first);
      switch (random() % 4) {
        case 0: {
          Region* region = guard_.close({memory.base + first * page_bytes, count});
          ASSERT_NE(region, nullptr);
          const size_t half = count * page_bytes / 2;
          put(region, seed, 0, half);
          if (random() % 2) (void)part.take(versions_);
          put(region, seed, half, count * page_bytes - half);
          expect_message(memory.base + first * page_bytes, seed, count * page_bytes);
          break;
        }
        case 1: (void)copy.take(versions_); break;
        case 2: (void)part.take(versions_); break;
        default: memory.base[random() % memory.bytes] = char(random());
      }
      EXPECT_TRUE(versions_.look(memory.base, memory.bytes));
      EXPECT_EQ(copy.first_wrong(versions_), -1);
      EXPECT_EQ(part.first_wrong(versions_), -1);
    }
    versions_.drop(memory.base, memory.bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, FollowedLives, testing::ValuesIn(every_way), way_name);
INSTANTIATE_TEST_SUITE_P(Every, FollowedAndClosed, testing::ValuesIn(every_wish), wish_name);

}  // namespace
}  // namespace headway::guard
