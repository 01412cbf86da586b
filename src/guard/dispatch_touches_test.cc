// Where a touch of a closed page is a signal, a thread that blocked it would die there. While pages
// are closed nobody does: who is about to, waits for them; where somebody does, nothing is closed.
#include <poll.h>
#include <pthread.h>
#include <ucontext.h>

#include <csignal>

#include "guard/dispatch.h"
#include "guard/dispatch_test_pages.h"

namespace headway::guard {
namespace {

volatile int handled = 0;
bool blocks_in_frame = false;

void on_signal(int, siginfo_t*, void* context) {
  handled = handled + 1;
  if (blocks_in_frame) sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, SIGSEGV);
}

sigset_t one_signal(int number) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  return one;
}

bool is_blocked(int number) {
  sigset_t now;
  sigprocmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, number);
}

class Touches : public Trapped {
 protected:
  void SetUp() override {
    Trapped::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    handled = 0;
    blocks_in_frame = false;
    dispatch_.stop();
    ASSERT_EQ(dispatch_.start(&pages_, true), Outcome::ok);
    begin_ = snapshot();
  }
  void TearDown() override {
    signal(SIGUSR2, SIG_DFL);
    const sigset_t touch = one_signal(SIGSEGV);
    pthread_sigmask(SIG_UNBLOCK, &touch, nullptr);
    Trapped::TearDown();
  }
  bool arms() {
    const base::OwnCalls ours;
    const bool armed = dispatch_.arm();
    dispatch_.disarm();
    return armed;
  }
  static void handle(bool full_mask) {
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO;
    if (full_mask) sigfillset(&action.sa_mask);
    ASSERT_EQ(sigaction(SIGUSR2, &action, nullptr), 0);
  }
};

TEST_F(Touches, NothingIsClosedWhileThisThreadBlocksThem) {
  const sigset_t touch = one_signal(SIGSEGV);
  ASSERT_TRUE(arm());
  open_and_disarm();
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &touch, nullptr), 0);
  EXPECT_FALSE(arms());
  EXPECT_TRUE(is_blocked(SIGSEGV)) << "it is the program's to unblock";
  ASSERT_EQ(sigprocmask(SIG_UNBLOCK, &touch, nullptr), 0);
  EXPECT_TRUE(arms());
}

TEST_F(Touches, NorWhileThereAreOtherThreads) {
  std::atomic<bool> ready{false}, over{false};
  std::thread other([&] {
    EXPECT_TRUE(dispatch_.enroll());
    ready = true;
    while (!over) sleep_ms(1);
  });
  while (!ready) sleep_ms(1);
  EXPECT_FALSE(arms());
  over = true;
  other.join();
  EXPECT_TRUE(arm()) << "it has ended";
  open_and_disarm();
}

TEST_F(Touches, WhoIsAboutToBlockThemWaits) {
  for (const int how : {SIG_BLOCK, SIG_SETMASK}) {
    sigset_t all, before;
    sigfillset(&all);
    close(1, 1, 20);
    EXPECT_EQ(sigprocmask(how, &all, &before), 0);
    EXPECT_FALSE(pages_.any_closed());
    EXPECT_TRUE(is_blocked(SIGSEGV));
    EXPECT_FALSE(sigismember(&before, SIGSEGV));
    EXPECT_EQ(sigprocmask(SIG_SETMASK, &before, nullptr), 0);
    open_and_disarm();
  }
  EXPECT_EQ(since().settled, 2u);
}

TEST_F(Touches, OtherMasksPass) {
  const sigset_t other = one_signal(SIGUSR1);
  sigset_t before;
  close(1, 1);
  EXPECT_EQ(sigprocmask(SIG_BLOCK, &other, &before), 0);
  EXPECT_EQ(sigprocmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_TRUE(pages_.any_closed());
  open_and_disarm();
}

TEST_F(Touches, HandlersRunWithThem) {
  handle(true);
  close(1, 1, 20);
  struct sigaction now {};
  EXPECT_EQ(sigaction(SIGUSR2, nullptr, &now), 0);
  EXPECT_FALSE(sigismember(&now.sa_mask, SIGSEGV));
  EXPECT_TRUE(sigismember(&now.sa_mask, SIGTERM));
  EXPECT_EQ(since().settled, 0u);
  handle(true);
  EXPECT_FALSE(pages_.any_closed()) << "one that is installed meanwhile";
  EXPECT_EQ(since().settled, 1u);
  close(1, 1, 20);
  EXPECT_EQ(sigaction(SIGUSR2, nullptr, &now), 0);
  EXPECT_FALSE(sigismember(&now.sa_mask, SIGSEGV));
  open_and_disarm();
}

TEST_F(Touches, ForTheTimeOfACall) {
  handle(false);
  const sigset_t usr2 = one_signal(SIGUSR2), touch = one_signal(SIGSEGV);
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &usr2, nullptr), 0);
  raise(SIGUSR2);
  close(1, 1, 20);
  EXPECT_EQ(ppoll(nullptr, 0, nullptr, &touch), -1);
  EXPECT_FALSE(pages_.any_closed());
  EXPECT_EQ(int(handled), 1);
  EXPECT_EQ(sigprocmask(SIG_UNBLOCK, &usr2, nullptr), 0);
  open_and_disarm();
}

TEST_F(Touches, AHandlerThatReturnsToAMask) {
  handle(false);
  blocks_in_frame = true;
  close(1, 1, 20);
  raise(SIGUSR2);
  EXPECT_FALSE(pages_.any_closed());
  EXPECT_TRUE(is_blocked(SIGSEGV));
  open_and_disarm();
}

}  // namespace
}  // namespace headway::guard
