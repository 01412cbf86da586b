// Addresses that lead nowhere.
#include "transports/tcp/tcp_test_fakes.h"

namespace headway::tcp {
namespace {

TEST(NoRoute, NobodyListens) {
  TestNode a(0, 2);
  uint16_t port;
  {
    FakePeer gone;
    port = gone.port;
  }
  ASSERT_TRUE(a.start());
  ASSERT_EQ(a.tcp.set_card(1, card_for(a, port).c_str()), Outcome::ok);
  EXPECT_EQ(a.send(1, "x"), Push::full);
  EXPECT_TRUE(a.losses.empty()) << "push() itself never reports";
  ASSERT_TRUE(drive({&a}, [&] { return a.losses.size() == 1; }, 3000)) << "refused: no long wait";
  EXPECT_EQ(a.losses[0].why, Outcome::no_route);
  const std::string story = a.losses[0].story;
  EXPECT_NE(story.find("from rank 0 to rank 1"), std::string::npos) << story;
  EXPECT_NE(story.find("127.0.0.1 port " + std::to_string(port) + " from 127.0.0.1"),
            std::string::npos)
      << story;
  EXPECT_NE(story.find("Connection refused"), std::string::npos) << story;
  EXPECT_EQ(a.send(1, "x"), Push::full);
  rest({&a}, 300);
  EXPECT_EQ(a.losses.size(), 1u);
  EXPECT_FALSE(a.tcp.writing());
  EXPECT_FALSE(a.readable());
}

TEST(NoRoute, NoAnswerAtAllEndsInTime) {
  TestNode a(0, 2);
  a.config.connect_timeout_us = 600'000;
  ASSERT_TRUE(a.start());
  DeafPeer deaf;
  ASSERT_EQ(a.tcp.set_card(1, card_for(a, deaf.port, "o127.0.0.1/8").c_str()), Outcome::ok);
  EXPECT_EQ(a.send(1, "x"), Push::full);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(drive({&a}, [&] { return a.losses.size() == 1; }, 5000));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
  EXPECT_EQ(a.losses[0].why, Outcome::no_route);
  EXPECT_NE(a.losses[0].story.find("Connection timed out"), std::string::npos) << a.losses[0].story;
}

TEST(NoRoute, AddressesThatLeadNowhere) {
  TestNode a(0, 2);
  a.config.connect_timeout_us = 800'000;
  ASSERT_TRUE(a.start());
  // Documentation networks: routed into the void, or not at all.
  ASSERT_EQ(a.tcp.set_card(1, card_for(a, 9, "g198.51.100.7/24,g2001:db8::7/64").c_str()),
            Outcome::ok);
  EXPECT_EQ(a.send(1, "x"), Push::full);
  ASSERT_TRUE(drive({&a}, [&] { return a.losses.size() == 1; }, 5000));
  EXPECT_EQ(a.losses[0].why, Outcome::no_route);
  const std::string story = a.losses[0].story;
  EXPECT_NE(story.find("198.51.100.7 port 9"), std::string::npos) << story;
  EXPECT_NE(story.find("2001:db8::7 port 9"), std::string::npos) << story;
  EXPECT_NE(story.find("HEADWAY_TCP_INTERFACE"), std::string::npos) << story;
}

TEST(NoRoute, AnotherJobAtTheAddressIsNamedAndTheNextTried) {
  TestNode a(0, 2), b(1, 2), stranger(1, 2);
  memset(stranger.config.secret, 1, 16);
  ASSERT_TRUE(a.start() && b.start() && stranger.start());
  ASSERT_EQ(a.tcp.set_card(1, stranger.card().c_str()), Outcome::ok);
  EXPECT_EQ(a.send(1, "x"), Push::full);
  ASSERT_TRUE(drive({&a, &stranger}, [&] { return a.losses.size() == 1; }));
  EXPECT_NE(a.losses[0].story.find("a process of another job answered"), std::string::npos)
      << a.losses[0].story;
  EXPECT_NE(a.losses[0].story.find("no firewall is in the way"), std::string::npos)
      << a.losses[0].story;
  EXPECT_TRUE(stranger.losses.empty());
}

TEST(NoRoute, SilentServiceIsPassedOver) {
  TestNode a(0, 2);
  a.config.connect_timeout_us = 2'000'000;
  ASSERT_TRUE(a.start());
  FakePeer silent;                          // on 127.0.0.1: takes connections, says nothing
  FakePeer rank("127.0.0.9", silent.port);  // the rank, at the second address
  ASSERT_EQ(a.tcp.set_card(1, card_for(a, rank.port, "o127.0.0.1/8,o127.0.0.9/8").c_str()),
            Outcome::ok);
  EXPECT_EQ(a.send(1, "x"), Push::full);
  Raw unheard = silent.accept_from({&a});
  Raw dialled = rank.accept_from({&a});
  take(dialled, a, {&a});
  EXPECT_TRUE(drive({&a}, [&] { return a.tcp.writable(1); }));
  EXPECT_TRUE(a.losses.empty());
}

// All addresses tried, one of them silent: that one gets the rest of the time, without limit.
TEST(NoRoute, SilentOneIsTheLastHope) {
  TestNode a(0, 2);
  a.config.connect_timeout_us = 600'000;
  ASSERT_TRUE(a.start());
  FakePeer late("127.0.0.9");
  ASSERT_EQ(a.tcp.set_card(1, card_for(a, late.port, "o127.0.0.9/8,o127.0.0.8/8").c_str()),
            Outcome::ok);
  EXPECT_EQ(a.send(1, "x"), Push::full);
  rest({&a}, 1500);
  EXPECT_TRUE(a.losses.empty());
  int fd = -1, last = -1;
  while ((fd = accept(late.listener.fd, nullptr, nullptr)) >= 0) {
    if (last >= 0) close(last);
    last = fd;
  }
  Raw dialled(last);
  take(dialled, a, {&a});
  EXPECT_TRUE(drive({&a}, [&] { return a.tcp.writable(1); }));
}

}  // namespace
}  // namespace headway::tcp
