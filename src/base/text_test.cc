// Text, List, Doorbell, SpinLock: the small tools.
#include "base/text.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <list>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/counter.h"
#include "base/doorbell.h"
#include "base/feed.h"
#include "base/list.h"
#include "base/spin_lock.h"

namespace headway::base {
namespace {

#if defined(HEADWAY_DEBUG)
TEST(TextDeathTest, StaysWithinItsEnd) {
  Text<8> text;
  text << "a line";
  memset(static_cast<void*>(&text), 'x', sizeof text);
  EXPECT_DEATH(text << "more", "does not hold");
}

TEST(CounterDeathTest, DoesNotFallBelowNothing) {
  Counter counter(3);
  counter -= 3;
  EXPECT_DEATH(--counter, "does not hold");
}

TEST(SpinLockDeathTest, IsNotRecursive) {
  SpinLock lock;
  lock.lock();
  EXPECT_DEATH(lock.lock(), "does not hold");
  lock.unlock();
}
#endif

TEST(Text, NumbersAsTheStandardLibraryPrintsThem) {
  const int64_t numbers[] = {0, 1, -1, 9, 10, -10, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  for (const int64_t number : numbers) {
    Text<64> text;
    text << number;
    EXPECT_EQ(std::string(text.c_str()), std::to_string(number));
    Text<64> other;
    other << uint64_t(number);
    EXPECT_EQ(std::string(other.c_str()), std::to_string(uint64_t(number)));
  }
  Text<64> small;
  small << int8_t(-128) << ' ' << uint8_t(255);
  EXPECT_EQ(std::string(small.c_str()), "-12832255") << "characters are numbers here";
  Text<64> hex;
  hex.hex(0) << " ";
  hex.hex(0xdeadBEEF01234567);
  EXPECT_EQ(std::string(hex.c_str()), "0x0 0xdeadbeef01234567");
}

TEST(Text, WhatDoesNotFitIsCut) {
  for (size_t n = 0; n < 40; ++n) {
    Text<16> text;
    text << std::string(n, 'a').c_str();
    EXPECT_EQ(text.size(), std::min<size_t>(n, 15));
    EXPECT_EQ(strlen(text.c_str()), text.size());
    text << "bcd" << 12345;
    EXPECT_EQ(text.size(), std::min<size_t>(n + 8, 15));
    EXPECT_EQ(std::string(text.c_str()), (std::string(n, 'a') + "bcd12345").substr(0, 15));
  }
  Text<16> none;
  none << static_cast<const char*>(nullptr);
  EXPECT_EQ(std::string(none.c_str()), "(null)");
  none.clear();
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(*none.c_str(), '\0');
}

struct Item {
  Item* list_next = nullptr;
  Item* list_prev = nullptr;
  int value = 0;
};

TEST(List, AgainstAStandardList) {
  std::mt19937_64 random(9);
  std::vector<Item> items(50);
  std::vector<Item*> outside;
  for (Item& item : items) outside.push_back(&item);
  List<Item> list;
  std::list<Item*> model;
  for (int i = 0; i < 20000; ++i) {
    if (!outside.empty() && random() % 2) {
      Item* item = outside.back();
      outside.pop_back();
      const auto how = random() % 3;
      if (how == 0 || model.empty()) {
        list.push_back(item);
        model.push_back(item);
      } else if (how == 1 || model.size() == 1) {
        list.push_front(item);
        model.push_front(item);
      } else {
        auto at = model.begin();
        std::advance(at, 1 + random() % (model.size() - 1));
        list.insert_before(*at, item);
        model.insert(at, item);
      }
    } else if (!model.empty()) {
      auto at = model.begin();
      std::advance(at, random() % model.size());
      if (random() % 3 == 0) at = model.begin();
      if (at == model.begin() && random() % 2) {
        ASSERT_EQ(list.pop_front(), *at);
      } else {
        list.remove(*at);
      }
      EXPECT_EQ((*at)->list_next, nullptr);
      outside.push_back(*at);
      model.erase(at);
    }
    ASSERT_EQ(list.size(), model.size());
    ASSERT_EQ(list.empty(), model.empty());
    ASSERT_EQ(list.first(), model.empty() ? nullptr : model.front());
    ASSERT_EQ(list.last(), model.empty() ? nullptr : model.back());
    Item* before = nullptr;
    Item* item = list.first();
    for (Item* expected : model) {
      ASSERT_EQ(item, expected);
      ASSERT_EQ(item->list_prev, before);
      before = item;
      item = item->list_next;
    }
    ASSERT_EQ(item, nullptr);
  }
  List<Item> empty;
  EXPECT_EQ(empty.pop_front(), nullptr);
}

TEST(SpinLock, ExcludesThreads) {
  SpinLock lock;
  uint64_t count = 0;
  constexpr int threads = 4, rounds = 50'000;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      for (int round = 0; round < rounds; ++round) {
        if (i % 2) {
          SpinGuard guard(lock);
          ++count;
        } else {
          while (!lock.try_lock()) sched_yield();
          ++count;
          lock.unlock();
        }
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(count, uint64_t(threads) * rounds);
  EXPECT_FALSE(lock.is_held());
}

bool is_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(Doorbell, RingsUntilDrained) {
  Doorbell bell;
  ASSERT_EQ(bell.create(), Outcome::ok);
  EXPECT_FALSE(bell.drain());
  for (const int rings : {1, 2, 63, 64, 65, 128, 1000}) {
    for (int i = 0; i < rings; ++i) bell.ring();
    EXPECT_TRUE(is_readable(bell.read_fd()));
    EXPECT_TRUE(bell.drain()) << rings;
    EXPECT_FALSE(is_readable(bell.read_fd())) << rings;
    EXPECT_FALSE(bell.drain()) << rings;
  }
  bell.close();
  EXPECT_EQ(bell.read_fd(), -1);
  bell.close();
}

// A pipe that nobody empties must not stop the ringer.
TEST(Doorbell, AFullBellDoesNotBlock) {
  Doorbell bell;
  ASSERT_EQ(bell.create(), Outcome::ok);
  for (int i = 0; i < 100'000; ++i) bell.ring();
  EXPECT_TRUE(bell.drain());
  EXPECT_FALSE(is_readable(bell.read_fd()));
  bell.close();
}

TEST(Doorbell, ACopyOpenedThroughProcRingsToo) {
  Doorbell bell;
  ASSERT_EQ(bell.create(), Outcome::ok);
  const int fd = Doorbell::open_of(getpid(), bell.write_fd());
  ASSERT_GE(fd, 0);
  Doorbell::ring_fd(fd);
  EXPECT_TRUE(bell.drain());
  close(fd);
  bell.close();
  EXPECT_EQ(Doorbell::open_of(getpid(), 100'000), -1);
}

// The process that owns it may die at any moment: no SIGPIPE for who rings then.
TEST(Doorbell, RingingTheDeadIsNoSignal) {
  Doorbell bell;
  ASSERT_EQ(bell.create(), Outcome::ok);
  const int fd = Doorbell::open_of(getpid(), bell.write_fd());
  ASSERT_GE(fd, 0);
  bell.close();
  for (int i = 0; i < 100'000; ++i) Doorbell::ring_fd(fd);
  close(fd);
}

void pack_letters(const void*, uint64_t offset, void* out, size_t n) {
  for (size_t i = 0; i < n; ++i) static_cast<char*>(out)[i] = char('a' + (offset + i) % 26);
}
void unpack_to(void* memory, uint64_t offset, const void* in, size_t n) {
  memcpy(static_cast<char*>(memory) + offset, in, n);
}

TEST(Feed, FlatAndPackedGiveTheSameBytes) {
  char letters[100];
  pack_letters(nullptr, 0, letters, sizeof letters);
  const Feed flat{.flat = letters + 10, .length = 50};
  const Feed packed{.pack = pack_letters, .offset = 10, .length = 50};
  char a[50], b[50];
  for (size_t from = 0; from < 50; from += 7) {
    flat.copy(from, a, 50 - from);
    packed.copy(from, b, 50 - from);
    EXPECT_EQ(memcmp(a, b, 50 - from), 0);
  }
}

TEST(Landing, WhatIsBeyondTheEndIsDropped) {
  for (const bool flat : {true, false}) {
    char room[32];
    memset(room, '.', sizeof room);
    Landing landing{.length = 10};
    if (flat) {
      landing.flat = room + 2;
    } else {
      landing.unpack = unpack_to;
      landing.memory = room;
      landing.offset = 2;
    }
    landing.store(0, "01234", 5);
    landing.store(5, "56789XXXX", 9);
    landing.store(10, "YYY", 3);
    landing.store(1000, "ZZZ", 3);
    EXPECT_EQ(std::string(room, sizeof room), "..0123456789....................");
  }
}

}  // namespace
}  // namespace headway::base
