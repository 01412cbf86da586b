// Ranks that have no descriptor left for one more connection: who dials them is told so, and the
// connection comes up as soon as there is room. Each case is a process of its own, which lowers its
// limit of open files.
#include <cstdio>
#include <sys/resource.h>

#include "transports/tcp/tcp_test_fakes.h"

namespace headway::tcp {
namespace {

// Lets this process open `few` files more than it has open now, and not raise that.
void leave_room_for(int few) {
  const int next = dup(2);
  close(next);
  // Descriptors below the next one are in use, but perhaps some above it, too.
  rlim_t highest = rlim_t(next);
  for (int fd = next; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) highest = rlim_t(fd);
  }
  const rlimit limit = {highest + 1 + rlim_t(few), highest + 1 + rlim_t(few)};
  setrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = next; fd < int(highest); ++fd) {
    if (fcntl(fd, F_GETFD) < 0) dup2(2, fd);
  }
}

// Takes what is left, but for `few`.
std::vector<Raw> take_all_but(int few) {
  std::vector<Raw> taken;
  for (int fd = dup(2); fd >= 0; fd = dup(2)) taken.emplace_back(fd);
  for (int i = 0; i < few && !taken.empty(); ++i) taken.pop_back();
  return taken;
}

[[noreturn]] void leave(bool right, const TestNode& node) {
  for (const Loss& loss : node.losses) fprintf(stderr, "lost: %s\n", loss.story.c_str());
  _exit(right ? 0 : 1);
}

void nobody_comes_in() {
  TestNode a(0, 2), b(1, 2);
  a.config.connect_timeout_us = 500'000;
  if (!a.start() || !b.start()) leave(false, a);
  swap_cards({&a, &b});
  leave_room_for(8);
  const std::vector<Raw> taken = take_all_but(1);  // for the dial
  (void)a.send(1, "x");
  const bool told = drive({&a, &b}, [&] { return a.losses.size() == 1; }, 8000);
  leave(told && a.losses[0].why == Outcome::no_resource &&
            a.losses[0].story.find("no descriptor left") != std::string::npos && b.losses.empty(),
        a);
}

// The one descriptor is in use for our own dial when the peer's comes: both find the same one.
void both_dial() {
  TestNode a(0, 2), b(1, 2);
  if (!a.start() || !b.start()) leave(false, a);
  swap_cards({&a, &b});
  leave_room_for(8);
  const std::vector<Raw> taken = take_all_but(2);
  (void)a.send(1, "x");
  (void)b.send(0, "x");
  const bool met = drive({&a, &b}, [&] { return a.tcp.writable(1) && b.tcp.writable(0); }, 8000);
  leave(met && a.losses.empty() && b.losses.empty(), a);
}

void room_comes_later() {
  TestNode a(0, 2), b(1, 2);
  if (!a.start() || !b.start()) leave(false, a);
  swap_cards({&a, &b});
  leave_room_for(8);
  std::vector<Raw> taken = take_all_but(1);
  (void)a.send(1, "x");
  rest({&a, &b}, 700);
  const bool waited = !a.tcp.writable(1) && a.losses.empty();
  taken.pop_back();
  const bool met = drive({&a, &b}, [&] { return a.tcp.writable(1); }, 8000);
  leave(waited && met && a.losses.empty(), a);
}

// Who never says a word holds the last descriptor for a while only.
void silent_strangers() {
  TestNode a(0, 2), b(1, 2);
  if (!a.start() || !b.start()) leave(false, a);
  swap_cards({&a, &b});
  leave_room_for(12);
  std::vector<Raw> crowd;
  for (int i = 0; i < 3; ++i) crowd.push_back(connect_to(port_of(b)));
  std::vector<Raw> taken = take_all_but(1);
  rest({&b}, 300);
  (void)a.send(1, "x");
  rest({&a, &b}, 300);
  taken.pop_back();
  taken.pop_back();
  const bool met = drive({&a, &b}, [&] { return a.tcp.writable(1); }, 9000);
  leave(met && a.losses.empty() && b.losses.empty(), a);
}

TEST(StarvedDeathTest, TheDiallerIsToldAndDoesNotWaitForEver) {
  EXPECT_EXIT(nobody_comes_in(), testing::ExitedWithCode(0), "");
}
TEST(StarvedDeathTest, TwoWhoDialEachOtherMeet) {
  EXPECT_EXIT(both_dial(), testing::ExitedWithCode(0), "");
}
TEST(StarvedDeathTest, RoomThatComesLaterIsTaken) {
  EXPECT_EXIT(room_comes_later(), testing::ExitedWithCode(0), "");
}
TEST(StarvedDeathTest, SilentStrangersDoNotKeepTheLastDescriptor) {
  EXPECT_EXIT(silent_strangers(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace headway::tcp
