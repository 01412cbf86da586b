// Who watches a host, and who only says so. That hosts which vanish are noticed, and others not, is
// tested with whole jobs on simulated ones: tests/cluster/vanish_test.py.

#include <chrono>

#include "transports/tcp/tcp_test_fakes.h"

namespace headway::tcp {
namespace {

int told = 0;

HostPlan plan_for(uint32_t target) {
  HostPlan plan;
  plan.target = target;
  plan.silence_us = 3'000'000;
  plan.silent = [](uint32_t, const char*) { ++told; };
  return plan;
}

// Looks whenever it is time to, for so long.
void look_for(const Nodes& nodes, int ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < end) {
    rest(nodes, 50);
    for (TestNode* node : nodes) {
      if (node->tcp.hosts_fd() >= 0) node->tcp.look_at_hosts();
    }
  }
}

Hello watcher(const TestNode& from, uint32_t to) {
  Hello hello = hello_of(from, to);
  hello.purpose = Purpose::watch;
  hello.seal = seal_hello(key_of(from), hello);
  return hello;
}

TEST(HostWatch, ItsConnectionCarriesNoFrames) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  swap_cards({&a, &b});
  ASSERT_EQ(b.tcp.watch_hosts(plan_for(0), false), Outcome::ok);
  const Hello hello = watcher(a, 1);
  Raw raw = connect_to(port_of(b));
  raw.say(&hello, sizeof hello);
  const std::string frames = pattern(100'000, 7);
  ASSERT_GT(send(raw.fd, frames.data(), frames.size(), MSG_DONTWAIT | MSG_NOSIGNAL), 0);
  look_for({&b}, 1500);
  EXPECT_FALSE(raw.ended());
  EXPECT_TRUE(b.frames.empty());
  EXPECT_EQ(b.tcp.counters().connections, 0u);
  // A second one of the same rank takes its place.
  const Hello again = watcher(a, 1);
  Raw second = connect_to(port_of(b));
  second.say(&again, sizeof again);
  look_for({&b}, 1500);
  EXPECT_TRUE(raw.ended());
  EXPECT_FALSE(second.ended());
  // Said again, or with another purpose, it is nobody's.
  for (const bool changed : {false, true}) {
    Hello no = again;
    if (changed) no.purpose = Purpose::frames;
    Raw stranger = connect_to(port_of(b));
    stranger.say(&no, sizeof no);
    const uint64_t before = b.tcp.counters().rejected;
    EXPECT_TRUE(drive({&b}, [&] { return b.tcp.counters().rejected > before; }));
  }
  expect_alive(a, b);
  b.tcp.rest();
  b.tcp.end_watch();
  EXPECT_TRUE(second.ended());
  EXPECT_EQ(told, 0);
}

TEST(HostWatch, WhoDoesNotWatchTakesNobody) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  const Hello hello = watcher(a, 1);
  Raw raw = connect_to(port_of(b));
  raw.say(&hello, sizeof hello);
  EXPECT_TRUE(drive({&b}, [&] { return raw.ended(); }));
}

// Neither a rank that is gone while its host answers, nor a host that never did, has vanished.
TEST(HostWatch, OnlyAHostThatAnsweredOnceCanVanish) {
  TestNode a(0, 3), gone(1, 3);
  ASSERT_TRUE(a.start() && gone.start());
  swap_cards({&a, &gone});
  DeafPeer deaf;
  ASSERT_EQ(a.tcp.set_card(2, card_for(a, deaf.port, "o127.0.0.1/8").c_str()), Outcome::ok);
  gone.tcp.finish();
  for (const uint32_t target : {1u, 2u}) {
    ASSERT_EQ(a.tcp.watch_hosts(plan_for(target), false), Outcome::ok);
    look_for({&a}, 5500);
    EXPECT_EQ(told, 0) << target;
    a.tcp.end_watch();
  }
}

}  // namespace
}  // namespace headway::tcp
