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

// Its card names an address at which it does not listen, too, as that of a rank whose job keeps to
// the loopback.
void another_address_refuses() {
  TestNode a(0, 2), b(1, 2);
  a.config.connect_timeout_us = 500'000;
  if (!a.start() || !b.start()) leave(false, a);
  swap_cards({&a, &b});
  b.tcp.all_cards_set();  // 127.0.0.1 alone
  const std::string both = card_for(b, port_of(b), "o127.0.0.1/8,o127.0.0.2/8");
  if (a.tcp.set_card(1, both.c_str()) != Outcome::ok) leave(false, a);
  leave_room_for(8);
  const std::vector<Raw> taken = take_all_but(1);
  (void)a.send(1, "x");
  const bool told = drive({&a, &b}, [&] { return a.losses.size() == 1; }, 8000);
  const std::string& story = told ? a.losses[0].story : std::string();
  leave(told && a.losses[0].why == Outcome::no_resource &&
            story.find("refused") != std::string::npos &&
            story.find("firewall") == std::string::npos,
        a);
}

// Told once that there is no room, it finds that the rank has gone.
void it_ends_afterwards() {
  TestNode a(0, 2), b(1, 2);
  if (!a.start() || !b.start()) leave(false, a);
  swap_cards({&a, &b});
  leave_room_for(8);
  std::vector<Raw> taken = take_all_but(1);
  (void)a.send(1, "x");
  rest({&a, &b}, 250);
  b.tcp.finish();
  const bool told = drive({&a}, [&] { return a.losses.size() == 1; }, 5000);  // of 10 s
  leave(told && a.losses[0].why == Outcome::no_route &&
            a.losses[0].story.find("no descriptor") == std::string::npos,
        a);
}

// What was lent is there for the next one, though the program takes all that is free.
void the_next_one_is_told_too() {
  TestNode a(0, 2), b(1, 2);
  a.config.connect_timeout_us = 300'000;
  if (!a.start() || !b.start()) leave(false, a);
  swap_cards({&a, &b});
  leave_room_for(8);
  std::vector<Raw> taken = take_all_but(0), dialled;
  for (int i = 0; i < 3; ++i) {
    taken.pop_back();
    dialled.push_back(connect_to(port_of(b)));
    const Raw& raw = dialled.back();
    const Hello hello = hello_of(a, 1);
    raw.say(&hello, sizeof hello);
    b.tcp.reap(1 << 20);
    const Answer answer = read_answer(raw, {});
    if (answer.verdict != Verdict::starved) {
      fprintf(stderr, "dial %d: verdict %d\n", i, int(answer.verdict));
      leave(false, b);
    }
    for (int fd = dup(2); fd >= 0; fd = dup(2)) taken.emplace_back(fd);
    b.tcp.reap(1 << 20);
  }
  leave(true, b);
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
TEST(StarvedDeathTest, AnAddressThatRefusesHidesNothing) {
  EXPECT_EXIT(another_address_refuses(), testing::ExitedWithCode(0), "");
}
TEST(StarvedDeathTest, OneThatEndsAfterwardsIsToldToHaveEnded) {
  EXPECT_EXIT(it_ends_afterwards(), testing::ExitedWithCode(0), "");
}
TEST(StarvedDeathTest, TheNextDiallerIsToldToo) {
  EXPECT_EXIT(the_next_one_is_told_too(), testing::ExitedWithCode(0), "");
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
