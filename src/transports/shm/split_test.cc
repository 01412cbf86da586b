// Two ranks that copy one message, and a sender that claims a receive, as two threads.
#include "transports/shm/split.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "transports/shm/advert.h"

namespace headway::shm {
namespace {

uint64_t base_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 1;
}

constexpr uint32_t helper_id = 77;

// How often each byte was copied, in steps of 1 KB.
struct Copies {
  std::vector<int> starter, helper;
  explicit Copies(uint64_t bytes) : starter(bytes >> 10), helper(bytes >> 10) {}
  static void note(std::vector<int>& by, const Piece& piece) {
    for (uint64_t at = piece.offset; at < piece.offset + piece.length; at += 1024) ++by[at >> 10];
  }
};

// One message of `end` bytes from `base` on. The helper refuses its piece number `refuses`, from 1.
void share_out(SplitBoard& board, uint64_t base, uint64_t end, int refuses, std::mt19937& random) {
  Copies copies(end);
  Split starter(&board);
  ASSERT_TRUE(starter.open(helper_id, base, end, 4096));
  std::atomic<bool> over{false};
  int refused = 0;
  std::thread helper([&] {
    Split split(&board);
    for (int pieces = 1; !over.load();) {
      uint64_t address = 0;
      const Piece piece = split.take_back(helper_id, end, address);
      if (!piece.length) {
        std::this_thread::yield();
        continue;
      }
      ASSERT_EQ(address, 4096u);
      ASSERT_LE(piece.offset + piece.length, end);
      ASSERT_GE(piece.offset, base);
      if (pieces++ == refuses) {
        ++refused;
        split.helper_refused();
        break;
      }
      Copies::note(copies.helper, piece);
      split.helper_copied(piece);
    }
  });
  uint64_t front = base;
  for (;;) {
    if (random() % 2) std::this_thread::yield();
    const Piece piece = starter.take_front();
    if (!piece.length) break;
    ASSERT_EQ(piece.offset, front) << "the front goes without gaps";
    front += piece.length;
    Copies::note(copies.starter, piece);
  }
  Piece left;
  while (!starter.is_over(left)) std::this_thread::yield();
  // What the helper copied is to be seen from here on.
  Copies::note(copies.starter, left);
  EXPECT_TRUE(left.length == 0 || refuses);
  for (uint64_t i = 0; i < end >> 10; ++i) {
    ASSERT_EQ(copies.starter[i] + copies.helper[i], i >= base >> 10 ? 1 : 0) << i << " KB";
  }
  over = true;
  helper.join();
  EXPECT_EQ(left.length != 0, refused == 1);
}

TEST(Split, EveryByteOnce) {
  for (uint64_t seed = base_seed(); seed < base_seed() + 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
    std::mt19937 random{uint32_t(seed)};
    SplitBoard board{};
    for (int message = 0; message < 10 && !testing::Test::HasFailure(); ++message) {
      const uint64_t base = random() % 3 ? 0 : (random() % 100) << 10;
      const uint64_t end = base + ((64 + random() % (random() % 2 ? 300 : 8000)) << 10);
      share_out(board, base, end, int(random() % 4), random);
    }
  }
}

// A helper that looks all the time, also while the next message, longer or shorter, is being
// opened.
TEST(Split, AHelperThatIsThereAlready) {
  SplitBoard board{};
  constexpr uint64_t most = 2 << 20;
  std::vector<std::atomic<int>> copies(most / Split::unit);
  std::atomic<bool> over{false};
  std::thread helper([&] {
    Split split(&board);
    while (!over.load(std::memory_order_relaxed)) {
      uint64_t address = 0;
      const Piece piece = split.take_back(helper_id, most, address);
      if (!piece.length) continue;
      for (uint64_t at = piece.offset; at < piece.offset + piece.length; at += Split::unit) {
        copies[at / Split::unit].fetch_add(1, std::memory_order_relaxed);
      }
      split.helper_copied(piece);
    }
  });
  std::mt19937 random{uint32_t(base_seed())};
  Split starter(&board);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto enough = std::chrono::steady_clock::now() + std::chrono::milliseconds(800);
  bool hangs = false;
  for (int message = 0; message < 1'000'000 && !hangs && !HasFailure(); ++message) {
    if (message % 64 == 0 && std::chrono::steady_clock::now() > enough) break;
    const uint64_t units = 4 + random() % (most / Split::unit - 4);
    ASSERT_TRUE(starter.open(helper_id, 0, units * Split::unit, 4096));
    uint64_t front = 0;
    for (Piece piece; (piece = starter.take_front()).length; front += piece.length) {
    }
    Piece left;
    while (!hangs && !starter.is_over(left)) {
      std::this_thread::yield();
      hangs = std::chrono::steady_clock::now() > limit;
    }
    EXPECT_FALSE(hangs) << "message " << message << ": the helper copied what nobody gave it";
    for (uint64_t i = 0; i < copies.size(); ++i) {
      EXPECT_EQ(copies[i].exchange(0, std::memory_order_relaxed),
                i >= front / Split::unit && i < units ? 1 : 0)
          << "message " << message << " of " << units << " units, unit " << i;
    }
  }
  over = true;
  helper.join();
}

TEST(Split, HelperChecksWhatItReads) {
  SplitBoard board{};
  Split split(&board);
  uint64_t address = 0;
  EXPECT_EQ(split.take_back(helper_id, 1 << 20, address).length, 0u) << "nothing was opened";
  ASSERT_TRUE(split.open(helper_id, 0, 1 << 20, 4096));
  EXPECT_EQ(split.take_back(helper_id + 1, 1 << 20, address).length, 0u) << "another request's";
  EXPECT_EQ(split.take_back(helper_id, (1 << 20) - 1, address).length, 0u) << "too long for it";
  EXPECT_NE(split.take_back(helper_id, 1 << 20, address).length, 0u);
  split.close();
  EXPECT_EQ(split.take_back(helper_id, 1 << 20, address).length, 0u) << "closed";
  EXPECT_EQ(split.take_front().length, 0u) << "closed";
  EXPECT_FALSE(split.open(helper_id, 0, uint64_t(1) << 40, 4096)) << "more than can be counted";
}

TEST(Advert, OnlyOneSideGetsTheReceive) {
  // On a crowded machine, or under ThreadSanitizer, a seed takes many seconds, and the sender may
  // need more receives until it has once run beside one.
  using Clock = std::chrono::steady_clock;
  const auto enough = Clock::now() + std::chrono::seconds(2),
             most = enough + std::chrono::seconds(60);
  for (uint64_t seed = base_seed(); seed < base_seed() + 10; ++seed) {
    if (Clock::now() > enough) break;
    SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
    AdvertBoard board{};
    std::atomic<uint32_t> claimed{0};  // ids; the receiver waits for it to learn of a claim
    std::atomic<bool> over{false};
    std::thread sender([&] {
      Advert advert(&board);
      Posted posted;
      while (!over.load()) {
        if (!advert.claim(5, 1, 9, 3, posted)) continue;
        ASSERT_EQ(posted.bytes, posted.receive * 2u) << "fields of two lives";
        ASSERT_EQ(posted.address, posted.receive * 3u);
        ASSERT_EQ(claimed.exchange(posted.receive), 0u);
      }
    });
    std::mt19937 random{uint32_t(seed)};
    Advert advert(&board);
    uint32_t withdrawn = 0, taken = 0, id = 1;
    for (; id <= 20'000 || (!taken && Clock::now() < most); ++id) {
      advert.publish({5, 1, 9, id * 3u, id * 2u, id}, 3);
      for (uint32_t yields = random() % 8; yields > 0; --yields) std::this_thread::yield();
      if (advert.withdraw()) {
        ++withdrawn;
        EXPECT_EQ(claimed.load(), 0u);
      } else {
        ++taken;
        uint32_t seen;
        while ((seen = claimed.exchange(0)) == 0) std::this_thread::yield();
        EXPECT_EQ(seen, id);
        advert.clear();
      }
    }
    over = true;
    sender.join();
    EXPECT_EQ(withdrawn + taken, id - 1);
    EXPECT_GT(taken, 0u);
  }
}

TEST(Advert, NotForAnotherMessage) {
  AdvertBoard board{};
  Advert advert(&board);
  Posted posted;
  advert.publish({5, 1, 9, 4096, 100, 7}, 3);
  EXPECT_FALSE(advert.claim(6, 1, 9, 3, posted)) << "context";
  EXPECT_FALSE(advert.claim(5, 2, 9, 3, posted)) << "source";
  EXPECT_FALSE(advert.claim(5, 1, 8, 3, posted)) << "tag";
  EXPECT_FALSE(advert.claim(5, 1, 9, 4, posted)) << "an envelope that the receiver has not seen";
  advert.saw(4);
  EXPECT_TRUE(advert.claim(5, 1, 9, 4, posted));
  EXPECT_EQ(posted.receive, 7u);
  EXPECT_FALSE(advert.claim(5, 1, 9, 4, posted)) << "twice";
  EXPECT_FALSE(advert.withdraw());
}

#if defined(HEADWAY_DEBUG)
TEST(SplitDeathTest, TheStarterEndsItWhenAllIsTaken) {
  SplitBoard board{};
  Split starter(&board);
  ASSERT_TRUE(starter.open(helper_id, 0, 1 << 20, 4096));
  Piece left;
  EXPECT_DEATH((void)starter.is_over(left), "does not hold");
  while (starter.take_front().length) {
  }
  EXPECT_TRUE(starter.is_over(left));
  board.helped = 1;
  EXPECT_DEATH((void)starter.is_over(left), "does not hold");
}
#endif

}  // namespace
}  // namespace headway::shm
