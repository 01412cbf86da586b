// What the tests of guard/ share: memory of a program, messages, and a guard over each mechanism
// with a thread that serves it. Thread: each test's own. Owner: the test. Invariant: a mechanism
// that this system refuses is skipped, with the reason.
#pragma once
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "guard/choice.h"
#include "guard/guard.h"

namespace headway::guard {

inline uint64_t base_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 1;
}

inline char byte_of(uint64_t message, size_t at) {
  return char(message * 131 + at * 7 + (at >> 8) * 3 + (at >> 13));
}

// The program's memory: anonymous pages, all written before.
struct Memory {
  explicit Memory(size_t pages) : bytes(pages * page_bytes) {
    base = static_cast<char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memset(base, 0x5a, bytes);
  }
  ~Memory() { munmap(base, bytes); }
  char* base;
  size_t bytes;
};

// Not by mlock(), which the sanitizers make do nothing.
inline long lock_page(void* page) { return syscall(SYS_mlock, page, page_bytes); }

inline constexpr Wish every_wish[] = {Wish::missing, Wish::minor, Wish::trap};

inline std::string wish_name(const testing::TestParamInfo<Wish>& info) {
  return name_of(Kind(uint8_t(info.param)));
}

class Closed : public testing::TestWithParam<Wish> {
 protected:
  void SetUp() override {
    if (choice_.start(GetParam()) != Outcome::ok) {
      GTEST_SKIP() << "cannot be tested here: " << choice_.why();
    }
    guard_.start(choice_.mechanism());
    // As the message thread: it serves whenever there is something to read.
    server_ = std::thread([this] {
      pollfd waits{guard_.descriptor(), POLLIN, 0};
      while (!stop_) {
        if (poll(&waits, 1, 20) > 0) guard_.serve();
      }
    });
  }
  void TearDown() override {
    stop_ = true;
    if (server_.joinable()) server_.join();
    EXPECT_FALSE(guard_.any_closed());
    choice_.stop();
  }

  // Puts a piece of a message where it belongs, as a transport does.
  bool put(Region* region, uint64_t message, size_t offset, size_t n) {
    for (size_t i = 0; i < n; ++i) region->view[offset + i] = byte_of(message, offset + i);
    return guard_.arrived(region, offset, n);
  }
  bool put_all(Region* region, uint64_t message) { return put(region, message, 0, region->size()); }
  void expect_message(const char* at, uint64_t message, size_t n, size_t from = 0) {
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(at[i], byte_of(message, from + i))
          << "message " << message << ", byte " << from + i;
    }
  }

  // A curtain does not hear of it: the dispatch has the program wait for its pages first.
  bool hears_of_drops() const { return GetParam() == Wish::missing; }
  void expect_unwatched(const Memory& memory) const {
    EXPECT_EQ(madvise(memory.base, memory.bytes, MADV_DONTNEED), 0);
    EXPECT_EQ(memory.base[0], 0) << "watched still";
  }

  Choice choice_;
  Guard guard_;
  std::thread server_;
  std::atomic<bool> stop_{false};
};

}  // namespace headway::guard
