// The dispatch, the processes and threads of a program, and the real way of closing pages.
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "guard/dispatch.h"
#include "guard/dispatch_test_pages.h"
#include "guard/guard.h"
#include "guard/minor.h"
#include "guard/missing.h"
#include "guard/trap.h"

namespace headway::guard {
namespace {

TEST_F(Trapped, ForkedChildrenSeeEverything) {
  close(0, buffer_pages, 20);
  const pid_t child = fork();
  if (child == 0) {
    for (size_t i = 0; i < buffer_bytes; ++i) {
      if (buffer_[i] != byte(i)) _exit(1);
    }
    _exit(42);
  }
  EXPECT_EQ(pages_.alls, 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST_F(Trapped, ProgramsAreStarted) {
  close(0, buffer_pages, 20);
  EXPECT_EQ(system("exit 7"), 7 << 8);
  EXPECT_GE(since().settled, 1u);
  EXPECT_FALSE(pages_.any_closed());
  close(0, buffer_pages, 20);
  const char* arguments[] = {"sh", "-c", "exit 9", nullptr};
  pid_t child = 0;
  const Snapshot before = snapshot();
  EXPECT_EQ(
      posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char**>(arguments), environ), 0);
  EXPECT_GE(snapshot().settled, before.settled + 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 9);
}

TEST_F(Trapped, AThreadThatIsMadeFindsNothingClosed) {
  close(0, buffer_pages, 20);
  bool closed = true;
  std::thread thread([&] { closed = pages_.any_closed(); });
  thread.join();
  EXPECT_FALSE(closed);
  EXPECT_TRUE(arm()) << "it has ended";
}

TEST_F(Trapped, ThreadsThatAreNotEnrolled) {
  EXPECT_TRUE(dispatch_.covers_all_threads());
  std::atomic<int> step{0};
  std::atomic<bool> enrolled{false};
  const auto wait_for = [&](int n) {
    while (step < n) sleep_ms(1);
  };
  std::thread stranger([&] {
    wait_for(1);
    enrolled = dispatch_.enroll() && dispatch_.enroll();
    step = 2;
    wait_for(3);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    step = 4;
    wait_for(5);
  });
  sleep_ms(50);  // whatever ended before
  EXPECT_FALSE(dispatch_.covers_all_threads());
  EXPECT_FALSE(dispatch_.arm());
  EXPECT_FALSE(dispatch_.is_armed());
  step = 1;
  wait_for(2);
  EXPECT_TRUE(enrolled);
  EXPECT_TRUE(dispatch_.covers_all_threads());
  Dispatch::pass();
  EXPECT_TRUE(dispatch_.arm());
  dispatch_.disarm();
  Dispatch::resume();
  step = 3;
  wait_for(4);
  EXPECT_FALSE(dispatch_.covers_all_threads()) << "a trapped call would kill it";
  EXPECT_FALSE(dispatch_.arm());
  step = 5;
  stranger.join();
  EXPECT_TRUE(arm()) << "it has ended";
}

TEST_F(Trapped, ASecondEnrolledThread) {
  std::atomic<int> step{0};
  ssize_t written = 0;
  std::thread second([&] {
    if (!dispatch_.enroll()) return;
    step = 1;
    while (step < 2) {
    }
    written = write(file_, buffer_, buffer_bytes);
    step = 3;
    while (step < 4) sleep_ms(1);
  });
  while (step < 1) sleep_ms(1);
  close(1, 1, 20);
  step = 2;
  while (step < 3) {
  }
  const Snapshot counted = since();
  open_and_disarm();
  step = 4;
  second.join();
  EXPECT_EQ(written, ssize_t(buffer_bytes));
  EXPECT_EQ(counted.waited, 1u);
}

// A thread that leaves MPI while another arms is trapped, in whatever order that happens. The
// moment at which both cross is looked for: the later half of the time that arming takes.
TEST_F(Trapped, LeavingMpiWhileAnotherArms) {
  constexpr int rounds = 1000;
  std::atomic<int> begun{0}, armed{0}, left{0};
  std::atomic<uint64_t> arming_takes{50'000};
  int missed = 0;
  std::thread second([&] {
    if (!dispatch_.enroll()) return;
    for (int n = 1; n <= rounds; ++n) {
      Dispatch::pass();
      left = n - 1;
      while (begun < n) {
      }
      const uint64_t takes = arming_takes;
      const uint64_t until = base::now_ns() + takes / 2 + takes * uint64_t(n * 37 % 100) / 160;
      while (base::now_ns() < until) {
      }
      Dispatch::resume();
      while (armed < n) {
      }
      if (base::selector != base::calls_trapped) ++missed;
    }
    left = rounds;
    Dispatch::pass();
  });
  while (!dispatch_.covers_all_threads()) sleep_ms(1);
  Dispatch::pass();
  for (int n = 1; n <= rounds; ++n) {
    while (left < n - 1) {
    }
    begun = n;
    const uint64_t start = base::now_ns();
    const bool worked = dispatch_.arm();
    arming_takes = (arming_takes * 7 + base::now_ns() - start) / 8;
    EXPECT_TRUE(worked) << n;
    armed = n;
    while (left < n) {
    }
    dispatch_.disarm();
  }
  Dispatch::resume();
  second.join();
  EXPECT_EQ(missed, 0);
}

// ------------------------------------------------------------------------ with the real one

// As the engine: closed by userfaultfd, and whoever waits touches.
class RealPages final : public Pages {
 public:
  explicit RealPages(Guard& guard) : guard_(guard) {}
  bool is_closed(const void* from, size_t n) override { return guard_.is_closed(from, n); }
  void await_open(const void* from, size_t n) override {
    const auto* bytes = static_cast<const volatile char*>(from);
    wanted = reinterpret_cast<uintptr_t>(from) / page_bytes;
    for (size_t i = 0; i < n; i += page_bytes) (void)bytes[i];
    (void)bytes[n - 1];
    ++waits;
  }
  bool is_unmatched() override { return false; }
  void await_matched() override {}
  void await_all() override {
    while (guard_.any_closed()) sleep_ms(1);
  }
  std::atomic<int> waits{0};
  std::atomic<uintptr_t> wanted{0};  // the page that was waited for last

 private:
  Guard& guard_;
};

class RealGuard : public testing::TestWithParam<Kind> {
 protected:
  Mechanism* start() {
    switch (GetParam()) {
      case Kind::missing: return missing_.start() == Outcome::ok ? &missing_ : nullptr;
      case Kind::minor: return minor_.start() == Outcome::ok ? &minor_ : nullptr;
      case Kind::trap: return trap_.start() == Outcome::ok ? &trap_ : nullptr;
      case Kind::none: break;
    }
    return nullptr;
  }
  void stop() {
    if (GetParam() == Kind::missing) missing_.stop();
    if (GetParam() == Kind::minor) minor_.stop();
    if (GetParam() == Kind::trap) trap_.stop();
  }
  Missing missing_;
  Minor minor_;
  Trap trap_;
};

TEST_P(RealGuard, FullCountsAndTouches) {
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
  Mechanism* mechanism = start();
  if (!mechanism) GTEST_SKIP() << "not on this system";
  Guard guard;
  guard.start(mechanism);
  RealPages pages(guard);
  Dispatch dispatch;
  const Outcome started = dispatch.start(&pages);
  if (started == Outcome::unsupported) GTEST_SKIP() << "no system call dispatch";
  ASSERT_EQ(started, Outcome::ok);
  ASSERT_TRUE(dispatch.enroll());
  auto* buffer = static_cast<char*>(mmap(nullptr, buffer_bytes + page_bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(buffer + buffer_bytes, page_bytes);
  memset(buffer, 1, buffer_bytes);
  const int file = int(memfd_create("dispatch_test", 0));
  std::atomic<int> step{0};
  Region* region = nullptr;
  std::thread message([&] {
    if (!dispatch.exempt()) return;
    step = 1;
    while (step < 2) sleep_ms(1);
    for (size_t page = 0; page < buffer_pages; ++page) {
      // The second and the last come when a call waits for them, however long it takes to be made.
      const bool called = page == 1 || page + 1 == buffer_pages;
      const uintptr_t number = reinterpret_cast<uintptr_t>(buffer) / page_bytes + page;
      for (int i = 0; i < 5 || (called && pages.wanted != number && i < 10'000); ++i) {
        guard.serve();
        sleep_ms(1);
      }
      memset(region->view + page * page_bytes, int('a' + page), page_bytes);
      (void)guard.arrived(region, page * page_bytes, page_bytes);
    }
    while (step < 3) sleep_ms(1);
  });
  while (step < 1) sleep_ms(1);
  const uint64_t waited = dispatch.counters().waited;
  Dispatch::pass();
  for (int i = 0; i < 1000 && !dispatch.covers_all_threads(); ++i) sleep_ms(1);
  ASSERT_TRUE(dispatch.arm());
  region = guard.close({buffer, buffer_pages});
  ASSERT_NE(region, nullptr);
  Dispatch::resume();
  step = 2;
  // A touch first: where that is a signal, its handler makes calls itself.
  EXPECT_EQ(*static_cast<volatile char*>(buffer + 9), 'a');
  constexpr size_t most = buffer_bytes - page_bytes;
  EXPECT_EQ(write(file, buffer, most), ssize_t(most));
  EXPECT_EQ(dispatch.counters().waited, waited + 1);
  // A string without an end, in the last page: behind it there is nothing that could be touched.
  EXPECT_EQ(access(buffer + buffer_bytes - 100, F_OK), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(dispatch.counters().waited, waited + 2);
  EXPECT_GE(pages.waits, 2);
  EXPECT_EQ(write(file, buffer + most, page_bytes), ssize_t(page_bytes));
  dispatch.disarm();
  step = 3;
  message.join();
  char seen[buffer_bytes];
  EXPECT_EQ(pread(file, seen, buffer_bytes, 0), ssize_t(buffer_bytes));
  for (size_t i = 0; i < buffer_bytes; ++i) ASSERT_EQ(seen[i], char('a' + i / page_bytes)) << i;
  dispatch.stop();
  close(file);
  munmap(buffer, buffer_bytes);
  stop();
}

INSTANTIATE_TEST_SUITE_P(Ways, RealGuard, testing::Values(Kind::missing, Kind::minor, Kind::trap),
                         [](const auto& info) {
                           return info.param == Kind::missing ? "missing"
                                  : info.param == Kind::minor ? "minor"
                                                              : "trap";
                         });

// Most users are not root: the same tests again, by one of them.
TEST(AsOrdinaryUser, AllOfThis) {
  if (geteuid() != 0) GTEST_SKIP() << "we are one";
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(77);
    const char* arguments[] = {
        "guard_test", "--gtest_brief=1",
        "--gtest_filter=Trapped.*:*FullCount*:Signals.*:Chained.*:*RealGuard.*", nullptr};
    execve("/proc/self/exe", const_cast<char**>(arguments), environ);
    _exit(77);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "this program cannot be run by another user here";
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace headway::guard
