// Versions of pages: those that were written change, and no others; what cannot be followed is
// refused; a copy that is brought up to date by versions equals the memory, while threads write.
// Seeds are printed and can be set.
#include "guard/versions.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "base/clock.h"
#include "guard/guard_test_limits.h"
#include "guard/versions_test_followed.h"

namespace headway::guard {
namespace {

TEST_P(Followed, WrittenPagesAndOnlyThose) {
  Memory memory(2048);  // two page tables and more
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  EXPECT_NE(versions_.version(memory.base), 0u);
  Copy copy(memory.base, 2048);
  EXPECT_EQ(copy.take(versions_), 2048);
  EXPECT_EQ(copy.take(versions_), 0);
  memory.base[3 * page_bytes] = 1;
  memory.base[1024 * page_bytes - 1] = 2;
  memory.base[1024 * page_bytes] = 3;
  memory.base[memory.bytes - 1] = 4;
  EXPECT_EQ(copy.changed(versions_), (Pages{3, 1023, 1024, 2047}));
  EXPECT_EQ(copy.changed(versions_), (Pages{3, 1023, 1024, 2047})) << "versions stay";
  EXPECT_EQ(copy.take(versions_), 4);
  memory.base[3 * page_bytes] = 1;  // the same value
  EXPECT_EQ(copy.changed(versions_), Pages{3});
  EXPECT_EQ(copy.take(versions_), 1);
  EXPECT_EQ(copy.first_wrong(versions_), -1);
  versions_.drop(memory.base, memory.bytes);
  EXPECT_EQ(versions_.version(memory.base), 0u);
  EXPECT_FALSE(versions_.look(memory.base, memory.bytes));
  memory.base[0] = 5;
  EXPECT_EQ(versions_.counters.written, 2048u + 4 + 1);
  EXPECT_EQ(versions_.counters.used, 1u);
  EXPECT_EQ(versions_.counters.lost, 1u);
}

// Every second page: more runs than the system tells in one call.
TEST_P(Followed, ManyRuns) {
  Memory memory(1000);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  Copy copy(memory.base, 1000);
  EXPECT_EQ(copy.take(versions_), 1000);
  Pages written;
  for (size_t i = 1; i < 1000; i += 2) {
    memory.base[i * page_bytes + i] = char(i);
    written.push_back(i);
  }
  EXPECT_EQ(copy.changed(versions_), written);
  EXPECT_EQ(copy.take(versions_), 500);
  EXPECT_EQ(copy.take(versions_), 0);
  EXPECT_EQ(copy.first_wrong(versions_), -1);
}

// A look at one range must not hide a write from the user of another.
TEST_P(Followed, TwoRangesShareAPage) {
  Memory memory(4);
  char* second = memory.base + 5000;
  ASSERT_TRUE(versions_.use(memory.base, 6000));
  ASSERT_TRUE(versions_.use(second, 9000));
  ASSERT_TRUE(versions_.look(memory.base, 6000));
  ASSERT_TRUE(versions_.look(second, 9000));
  const uint32_t first_knows = versions_.version(memory.base + page_bytes);
  const uint32_t second_knows = versions_.version(second);
  second[100] = 1;
  ASSERT_TRUE(versions_.look(memory.base, 6000));
  EXPECT_NE(versions_.version(memory.base + page_bytes), first_knows);
  ASSERT_TRUE(versions_.look(second, 9000));
  EXPECT_NE(versions_.version(second), second_knows);
  const uint32_t now = versions_.version(second);
  // Nor does the end of one.
  versions_.drop(memory.base, 6000);
  ASSERT_TRUE(versions_.look(second, 9000));
  EXPECT_EQ(versions_.version(second), now);
  second[0] = 2;
  ASSERT_TRUE(versions_.look(second, 9000));
  EXPECT_NE(versions_.version(second), now);
}

TEST_P(Followed, UsersAreCounted) {
  Memory memory(4);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  Copy copy(memory.base, 4);
  EXPECT_EQ(copy.take(versions_), 4);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  EXPECT_EQ(copy.take(versions_), 0) << "a second user makes no difference to the first";
  versions_.drop(memory.base, memory.bytes);
  EXPECT_EQ(copy.take(versions_), 0);
  versions_.drop(memory.base, memory.bytes);
  EXPECT_EQ(copy.take(versions_), -1);
  memory.base[0] = 1;
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  EXPECT_EQ(copy.take(versions_), 4);
}

TEST_P(Followed, WritesBySystemCalls) {
  if (by_signal()) GTEST_SKIP() << "they fail: this way is only for who asks for it";
  Memory memory(8);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  Copy copy(memory.base, 8);
  EXPECT_EQ(copy.take(versions_), 8);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::vector<char> data(2 * page_bytes, 'r');
  ASSERT_EQ(write(ends[1], data.data(), data.size()), ssize_t(data.size()));
  EXPECT_EQ(read(ends[0], memory.base + page_bytes, data.size()), ssize_t(data.size()));
  EXPECT_EQ(copy.changed(versions_), (Pages{1, 2}));
  EXPECT_EQ(copy.take(versions_), 2);
  const iovec from{const_cast<char*>(data.data()), 10}, to{memory.base + 5 * page_bytes, 10};
  EXPECT_EQ(process_vm_writev(getpid(), &from, 1, &to, 1, 0), 10);
  EXPECT_EQ(copy.changed(versions_), Pages{5});
  close(ends[0]);
  close(ends[1]);
}

// Our own calls know that, and how to go on.
TEST_P(Followed, CallsThatWouldFailArePrepared) {
  Memory memory(8);
  ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
  Copy copy(memory.base, 8);
  EXPECT_EQ(copy.take(versions_), 8);
  char* to = memory.base + 3 * page_bytes - 5;
  const iovec from{to + 3 * page_bytes, 10}, there{to, 10};
  if (by_signal()) {
    EXPECT_EQ(process_vm_writev(getpid(), &from, 1, &there, 1, 0), -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(copy.changed(versions_), Pages{});
  }
  EXPECT_EQ(versions_.make_writable(to, 10), by_signal());
  EXPECT_FALSE(versions_.make_writable(to, 10)) << "they are writable";
  EXPECT_EQ(process_vm_writev(getpid(), &from, 1, &there, 1, 0), 10);
  EXPECT_EQ(copy.changed(versions_), (Pages{2, 3}));
  EXPECT_EQ(copy.take(versions_), 2);
  memory.base[0] = 1;
  (void)versions_.make_writable(memory.base, memory.bytes);
  EXPECT_EQ(copy.changed(versions_).size(), by_signal() ? 8u : 1u) << "nothing is lost";
  versions_.drop(memory.base, memory.bytes);
  EXPECT_FALSE(versions_.make_writable(memory.base, memory.bytes)) << "nobody's now";
  memory.base[1] = 2;
}

TEST_P(Followed, MemoryThatCannotBeFollowed) {
  constexpr size_t bytes = 4 * page_bytes;
  constexpr int rw = PROT_READ | PROT_WRITE;
  const auto usable = [&](void* memory) {
    const bool used = versions_.use(static_cast<char*>(memory), bytes);
    if (used) versions_.drop(static_cast<char*>(memory), bytes);
    return used;
  };
  const int file = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, bytes), 0);
  EXPECT_FALSE(usable(mmap(nullptr, bytes, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0)));
  EXPECT_FALSE(usable(mmap(nullptr, bytes, rw, MAP_SHARED, file, 0)));
  EXPECT_FALSE(usable(mmap(nullptr, bytes, rw, MAP_PRIVATE, file, 0)));
  EXPECT_FALSE(usable(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
  void* large = mmap(nullptr, 2 << 20, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (large != MAP_FAILED) {
    EXPECT_FALSE(usable(large));
  }
  alignas(page_bytes) char frame[bytes] = {};
  EXPECT_FALSE(usable(frame));
  std::thread([&] {
    alignas(page_bytes) char other[bytes] = {};
    EXPECT_FALSE(usable(other));
  }).join();
  Memory memory(6);
  munmap(memory.base + 5 * page_bytes, page_bytes);
  EXPECT_FALSE(usable(memory.base + 2 * page_bytes)) << "there is nothing behind it";
  EXPECT_TRUE(usable(memory.base));
  EXPECT_FALSE(versions_.use(memory.base, 0));
  ASSERT_EQ(lock_page(memory.base + page_bytes), 0);
  EXPECT_FALSE(usable(memory.base));
  syscall(SYS_munlock, memory.base + page_bytes, page_bytes);
  EXPECT_TRUE(usable(memory.base));
  EXPECT_GE(versions_.counters.refused, 7u);
  close(file);
}

// What a device writes there, nobody tells.
TEST_P(Followed, PinnedPages) {
  Memory memory(8);
  Ring ring;
  if (!ring.open() || !ring.pin(memory.base + 5 * page_bytes, page_bytes)) {
    GTEST_SKIP() << "io_uring is refused here";
  }
  EXPECT_FALSE(versions_.use(memory.base, memory.bytes));
  EXPECT_TRUE(versions_.use(memory.base, 4 * page_bytes));
  for (size_t i = 0; i < memory.bytes; ++i) ASSERT_EQ(memory.base[i], 0x5a);
  ASSERT_TRUE(ring.unpin());
  EXPECT_TRUE(versions_.use(memory.base, memory.bytes));
}

TEST_P(Followed, WhatThisSystemRefuses) {
  const auto outcome_after = [&](const std::function<bool()>& before) {
    return in_child([&] {
      if (!before()) return 77;
      Versions versions;
      const Outcome started = versions.start(nullptr, GetParam());
      if (versions.active() != (started == Outcome::ok)) return 70;
      if (started != Outcome::ok && !*versions.why()) return 71;
      return int(started);
    });
  };
  EXPECT_EQ(outcome_after([] { return limit(RLIMIT_NOFILE, 3); }), int(Outcome::no_resource));
  if (by_signal()) return;
  if (geteuid() == 0) {
    EXPECT_EQ(outcome_after([] { return become_nobody(); }), int(Outcome::ok));
  }
  const auto no_watch = [] {
    return (geteuid() != 0 || become_nobody()) && refuse(SYS_userfaultfd);
  };
  EXPECT_EQ(outcome_after(no_watch), int(Outcome::refused));
  EXPECT_EQ(in_child([&] {
              Versions versions;
              return no_watch() ? int(versions.start(nullptr)) : 77;
            }),
            int(Outcome::refused))
      << "only who asks gets the signal";
}

TEST_P(Followed, NoMappingIsLeft) {
  if (under_sanitizer) GTEST_SKIP() << "a sanitizer ends where there is no mapping left";
  EXPECT_EQ(in_child([&] {
              constexpr size_t pages = 32;
              Memory memory(pages);
              Copy copy(memory.base, pages);
              versions_.stop();
              Versions versions;
              if (versions.start(nullptr, GetParam()) != Outcome::ok) return 2;
              if (fill_mappings().size() < 1000) return 3;
              const bool used = versions.use(memory.base, memory.bytes);
              for (size_t i = 0; i < 200; ++i) {
                memory.base[i * 3 % pages * page_bytes] = char(i);
                if (!used || copy.take(versions) < 0) continue;
                if (copy.first_wrong(versions) >= 0) return 4;
              }
              if (used) versions.drop(memory.base, memory.bytes);
              for (size_t i = 0; i < pages; ++i) memory.base[i * page_bytes] = 7;
              versions.stop();
              return 0;
            }),
            0);
}

TEST_P(Followed, MemoryThatComesAndGoesIsLeftAlone) {
  Memory memory(4);
  bool refused = false;
  for (int i = 0; i < 200 && !refused; ++i) {
    refused = !versions_.use(memory.base, memory.bytes);
    if (refused) break;
    ASSERT_TRUE(versions_.look(memory.base, memory.bytes));
    munmap(memory.base, memory.bytes);
    EXPECT_FALSE(versions_.look(memory.base, memory.bytes));
    ASSERT_EQ(mmap(memory.base, memory.bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              memory.base);
    versions_.drop(memory.base, memory.bytes);
  }
  EXPECT_TRUE(refused);
  usleep(1'100'000);
  EXPECT_TRUE(versions_.use(memory.base, memory.bytes)) << "for a while";
}

// ------------------------------------------------------------------------------- threads that
// write

// Writes words at random, now and then drops a page, and rests when it is told to.
class Writer {
 public:
  Writer(Memory& memory, uint64_t seed)
      : memory_(memory), random_(seed), thread_([this] { run(); }) {}
  ~Writer() {
    ends_ = true;
    thread_.join();
  }
  void rest() {
    rests_ = true;
    while (!resting_) std::this_thread::yield();
  }
  void go_on() {
    rests_ = false;
    while (resting_) std::this_thread::yield();
  }

 private:
  void run() {
    while (!ends_) {
      if (rests_) {
        resting_ = true;
        while (rests_ && !ends_) std::this_thread::yield();
        resting_ = false;
      }
      const size_t burst = random_() % 64;
      for (size_t i = 0; i < burst; ++i) {
        auto* word = reinterpret_cast<uint64_t*>(memory_.base + random_() % memory_.bytes / 8 * 8);
        __atomic_store_n(word, random_(), __ATOMIC_RELAXED);
      }
      const size_t pages = memory_.bytes / page_bytes;
      if (random_() % 32 == 0) {
        madvise(memory_.base + random_() % pages * page_bytes, page_bytes, MADV_DONTNEED);
      }
      for (volatile size_t pause = random_() % 2000; pause > 0;) pause = pause - 1;
    }
  }

  Memory& memory_;
  std::mt19937_64 random_;
  std::atomic<bool> rests_{false}, resting_{false}, ends_{false};
  std::thread thread_;
};

TEST_P(Followed, CopiesStayRightWhileThreadsWrite) {
  const uint64_t end = base::now_ns() + 2'000'000'000;
  uint64_t looks = 0, taken = 0, unchanged = 0;
  for (uint64_t seed = base_seed(); base::now_ns() < end && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
    std::mt19937_64 random(seed);
    const size_t pages = 16 + random() % 500;
    Memory memory(pages);
    ASSERT_TRUE(versions_.use(memory.base, memory.bytes));
    Copy copy(memory.base, pages), other(memory.base + pages / 3 * page_bytes, pages / 3);
    Writer one(memory, seed * 2), two(memory, seed * 2 + 1);
    for (int round = 0; round < 40; ++round) {
      for (size_t i = random() % 8; i > 0; --i, ++looks) {
        const int n = random() % 3 ? copy.take(versions_) : other.take(versions_);
        ASSERT_GE(n, 0);
        taken += uint64_t(n);
      }
      one.rest();
      two.rest();
      unchanged += pages - copy.changed(versions_).size();
      EXPECT_EQ(copy.first_wrong(versions_), -1);
      (void)other.changed(versions_);
      EXPECT_EQ(other.first_wrong(versions_), -1);
      one.go_on();
      two.go_on();
    }
    versions_.drop(memory.base, memory.bytes);
  }
  EXPECT_GT(unchanged, 0u) << looks << " looks, " << taken << " pages";
}

INSTANTIATE_TEST_SUITE_P(Every, Followed, testing::ValuesIn(every_way), way_name);

}  // namespace
}  // namespace headway::guard
