// What the tests of the dispatch share: pages that are closed by mprotect, a helper thread that
// opens them later, and the counters since a test began. Thread: the test's. Owner: the test.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "guard/dispatch.h"
#include "guard/mechanism.h"

namespace headway::guard {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif

inline constexpr size_t buffer_pages = 4, buffer_bytes = buffer_pages * page_bytes;

inline void sleep_ms(long n) {
  timespec t{n / 1000, n % 1000 * 1'000'000};
  nanosleep(&t, nullptr);
}

// Closed pages of the test. As the engine's, its functions may be called in a signal handler.
class FakePages final : public Pages {
 public:
  bool is_closed(const void* from, size_t n) override {
    const auto at = reinterpret_cast<uintptr_t>(from);
    const uintptr_t begin = begin_.load(), end = end_.load();
    return begin < end && at < end && begin < at + n;
  }
  void await_open(const void* from, size_t n) override {
    ++opens;
    wait([&] { return !is_closed(from, n); });
  }
  bool is_unmatched() override { return unmatched.load(); }
  void await_matched() override {
    ++matches;
    wait([&] { return !unmatched.load(); });
  }
  void await_all() override {
    ++alls;
    wait([&] { return begin_.load() >= end_.load(); });
  }

  void close(char* from, size_t n) {
    ASSERT_EQ(mprotect(from, n, PROT_NONE), 0);
    end_ = reinterpret_cast<uintptr_t>(from) + n;
    begin_ = reinterpret_cast<uintptr_t>(from);
  }
  void open() {
    unmatched = false;
    const uintptr_t begin = begin_, end = end_;
    if (begin >= end) return;
    mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE);
    begin_ = end;
  }
  bool any_closed() const { return begin_.load() < end_.load(); }

  bool settles() override { return settling.load(); }
  int waits() const { return opens.load() + matches.load() + alls.load(); }

  std::atomic<bool> unmatched{false}, settling{false};
  std::atomic<int> opens{0}, matches{0}, alls{0};

 private:
  template <typename Done>
  void wait(Done done) {
    for (int i = 0; !done(); ++i) {
      if (i > 10'000) abort();  // nobody opens
      sleep_ms(1);
    }
  }
  std::atomic<uintptr_t> begin_{1}, end_{1};
};

class Trapped : public testing::Test {
 protected:
  void SetUp() override {
    if (thread_sanitizer) {
      GTEST_SKIP() << "ThreadSanitizer has a thread of its own, so nothing is ever armed";
    }
    const Outcome started = dispatch_.start(&pages_);
    if (started == Outcome::unsupported || started == Outcome::refused) {
      GTEST_SKIP() << "this system has no system call dispatch";
    }
    ASSERT_EQ(started, Outcome::ok);
    ASSERT_TRUE(dispatch_.enroll());
    buffer_ = static_cast<char*>(
        mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < buffer_bytes; ++i) buffer_[i] = char(i * 7 + (i >> 8));
    ASSERT_EQ(pipe(pipe_), 0);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, socket_), 0);
    file_ = int(memfd_create("dispatch_test", 0));
    // Made before anything is closed: making a thread settles.
    std::atomic<bool> ready{false};
    helper_ = std::thread([this, &ready] {
      // As the message thread: the program's signals are for the program's threads.
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      ready = dispatch_.exempt();
      while (!over_) {
        const uint64_t due = due_, now = base::now_ns();
        const bool is_awaited = waits_before_ < 0 || pages_.waits() > waits_before_;
        if (due && now >= due && (is_awaited || now >= due + patience_ns)) {
          due_ = 0;
          const std::function<void()> what = on_due_;  // it may set the next one
          what();
        }
        sleep_ms(1);
      }
    });
    while (!ready) sleep_ms(1);
    begin_ = snapshot();
  }
  void TearDown() override {
    if (!helper_.joinable()) return;
    open_and_disarm();
    over_ = true;
    helper_.join();
    dispatch_.stop();
    munmap(buffer_, buffer_bytes);
    for (const int fd : {pipe_[0], pipe_[1], socket_[0], socket_[1], file_}) ::close(fd);
  }

  // Closes and traps. The pages open `ms` later, if that is not 0, and not before somebody waits
  // for them: a test may lose its core for as long.
  void close(size_t first, size_t count, long ms = 0) {
    Dispatch::pass();
    ASSERT_TRUE(arm());
    pages_.close(buffer_ + first * page_bytes, count * page_bytes);
    after(ms, [this] { pages_.open(); }, pages_.waits());
    Dispatch::resume();
  }
  // The kernel counts a thread for a moment after it has been joined.
  bool arm() {
    const base::OwnCalls ours;  // as the engine
    for (int i = 0; i < 1000; ++i) {
      if (dispatch_.arm()) return true;
      sleep_ms(1);
    }
    return false;
  }
  void after(long ms, std::function<void()> what, int waits_before = -1) {
    on_due_ = std::move(what);
    waits_before_ = waits_before;
    if (ms) due_ = base::now_ns() + uint64_t(ms) * 1'000'000;
  }
  // As the engine, inside MPI.
  void open_and_disarm() {
    Dispatch::pass();
    due_ = 0;
    pages_.open();
    dispatch_.disarm();
    Dispatch::resume();
  }

  struct Snapshot {
    uint64_t traps, passed, waited, settled;
  };
  Snapshot snapshot() const {
    const TrapCounters& c = dispatch_.counters();
    return {c.traps, c.passed, c.waited, c.settled};
  }
  Snapshot since() const {
    const Snapshot now = snapshot();
    return {now.traps - begin_.traps, now.passed - begin_.passed, now.waited - begin_.waited,
            now.settled - begin_.settled};
  }
  char byte(size_t i) const { return char(i * 7 + (i >> 8)); }

  FakePages pages_;
  Dispatch dispatch_;
  char* buffer_ = nullptr;
  int pipe_[2] = {-1, -1}, socket_[2] = {-1, -1}, file_ = -1;
  std::thread helper_;
  std::atomic<bool> over_{false};
  static constexpr uint64_t patience_ns = 1'000'000'000;  // where nobody waits
  std::atomic<uint64_t> due_{0};
  std::atomic<int> waits_before_{-1};  // -1: what is due waits for nobody
  std::function<void()> on_due_;
  Snapshot begin_{};
};

}  // namespace headway::guard
