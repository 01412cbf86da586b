// How connections come up: both ranks dialling at once, peers that vanish in every state, ranks
// that are away, families of addresses.
#include <random>

#include "transports/tcp/tcp_test_fakes.h"

namespace headway::tcp {
namespace {

TEST(Judge, TheLowerRanksHelloWins) {
  for (const auto state :
       {headway::tcp::Pair::idle, headway::tcp::Pair::dialling, headway::tcp::Pair::tentative}) {
    EXPECT_EQ(judge(state, 0, 1), Verdict::accept);
    EXPECT_EQ(judge(state, 1, 0), Verdict::accept);
  }
  EXPECT_EQ(judge(headway::tcp::Pair::committed, 0, 1), Verdict::crossed);
  EXPECT_EQ(judge(headway::tcp::Pair::committed, 1, 0), Verdict::accept);
  EXPECT_EQ(judge(headway::tcp::Pair::open, 0, 1), Verdict::gone);
  EXPECT_EQ(judge(headway::tcp::Pair::open, 1, 0), Verdict::gone);
  EXPECT_EQ(judge(headway::tcp::Pair::gone, 1, 0), Verdict::gone);
}

// Three ranks in one thread; every step is a push or a reap of a random one. Whatever the order,
// each pair ends with one connection, nothing is lost and the order is kept.
TEST(Race, RandomInterleavings) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    TestNode nodes[3] = {{0, 3}, {1, 3}, {2, 3}};
    const Nodes all = {&nodes[0], &nodes[1], &nodes[2]};
    for (TestNode* node : all) ASSERT_TRUE(node->start());
    swap_cards(all);
    uint32_t pushed[3][3] = {};
    const auto push = [&](uint32_t from, uint32_t to) {
      const std::string body = std::to_string(from) + ">" + std::to_string(to);
      if (nodes[from].send(to, body, pushed[from][to]) == Push::done) ++pushed[from][to];
    };
    for (int step = 0; step < 120; ++step) {
      const uint32_t who = random() % 3;
      const uint32_t other = (who + 1 + random() % 2) % 3;
      if (random() % 3 == 0) {
        push(who, other);
      } else {
        nodes[who].tcp.reap(1 << 20);
      }
    }
    for (uint32_t from = 0; from < 3; ++from) {
      for (uint32_t to = 0; to < 3; ++to) {
        if (from == to) continue;
        const uint32_t before = pushed[from][to];
        ASSERT_TRUE(drive(all,
                          [&] {
                            push(from, to);
                            return pushed[from][to] > before;
                          }))
            << from << " to " << to;
      }
    }
    ASSERT_TRUE(drive(all, [&] {
      for (uint32_t to = 0; to < 3; ++to) {
        size_t due = 0;
        for (uint32_t from = 0; from < 3; ++from) due += pushed[from][to];
        if (nodes[to].frames.size() != due) return false;
      }
      return true;
    }));
    for (uint32_t to = 0; to < 3; ++to) {
      uint32_t next[3] = {};
      for (const Frame& frame : nodes[to].frames) {
        EXPECT_EQ(frame.header.sequence, next[frame.peer]++);
        EXPECT_EQ(frame.body, std::to_string(frame.peer) + ">" + std::to_string(to));
      }
      EXPECT_EQ(nodes[to].tcp.counters().connections, 2u);
      EXPECT_EQ(nodes[to].tcp.counters().garbage, 0u);
      EXPECT_EQ(nodes[to].tcp.counters().rejected, 0u);
      EXPECT_TRUE(nodes[to].losses.empty());
    }
    if (HasFatalFailure()) return;
  }
}

// The two orders that matter, made by hand.
TEST(Race, BothHaveSaidHello) {
  for (const bool low_reads_first : {false, true}) {
    TestNode low(0, 2), high(1, 2);
    ASSERT_TRUE(low.start() && high.start());
    swap_cards({&low, &high});
    // Each dials before it can hear of the other, and says Hello in its first reap: the listener
    // is served before connections made later only if they are ready.
    EXPECT_EQ(low.send(1, "x"), Push::full);
    EXPECT_EQ(high.send(0, "x"), Push::full);
    TestNode& first = low_reads_first ? low : high;
    TestNode& second = low_reads_first ? high : low;
    first.tcp.reap(1 << 20);
    second.tcp.reap(1 << 20);
    ASSERT_TRUE(drive({&low, &high}, [&] { return low.tcp.writable(1) && high.tcp.writable(0); }));
    EXPECT_EQ(low.tcp.counters().connections, 1u);
    EXPECT_EQ(high.tcp.counters().connections, 1u);
    expect_alive(low, high);
    expect_alive(high, low);
  }
}

TEST(Race, HigherRankCrossesALowerOneThatHasCommitted) {
  TestNode low(0, 2), high(1, 2);
  FakePeer fake;
  ASSERT_TRUE(low.start() && high.start());
  ASSERT_EQ(low.tcp.set_card(1, card_for(low, fake.port).c_str()), Outcome::ok);
  EXPECT_EQ(low.send(1, "x"), Push::full);
  Raw dialled = fake.accept_from({&low});
  const Hello hello = read_hello(dialled, {&low});
  EXPECT_EQ(hello.magic, hello_magic);
  // Now low has committed itself. The higher rank's own Hello must be turned away ...
  Raw crossing = connect_to(port_of(low));
  const Hello mine = hello_of(high, 0);
  crossing.say(&mine, sizeof mine);
  EXPECT_EQ(read_answer(crossing, {&low}).verdict, Verdict::crossed);
  EXPECT_TRUE(drive({&low}, [&] { return crossing.ended(); }));
  // ... and low's accepted.
  const Answer yes = answer_to(hello, high);
  dialled.say(&yes, sizeof yes);
  EXPECT_TRUE(drive({&low}, [&] { return low.tcp.writable(1); }));
}

// The dial that loses is given up by a reset, whoever closes first: ends closed in order, both at
// once, would leave a FIN to be sent again (64 hosts on a slow fabric, perf of tcp_retransmit_skb).
TEST(Race, TheDialThatLosesEndsByAReset) {
  for (const bool answered : {false, true}) {
    TestNode low(0, 2), high(1, 2);
    FakePeer fake;
    ASSERT_TRUE(low.start() && high.start());
    ASSERT_EQ(high.tcp.set_card(0, card_for(high, fake.port).c_str()), Outcome::ok);
    EXPECT_EQ(high.send(0, "x"), Push::full);
    const Raw dialled = fake.accept_from({&high});
    const Hello hello = read_hello(dialled, {&high});
    if (answered) {  // the lower rank has turned the dial away and closed its end
      const Answer no = answer_to(hello, low, Verdict::crossed);
      dialled.say(&no, sizeof no);
      EXPECT_EQ(shutdown(dialled.fd, SHUT_WR), 0);
    } else {  // its own Hello is there first
      const Raw winning = connect_to(port_of(high));
      const Hello mine = hello_of(low, 1);
      winning.say(&mine, sizeof mine);
      EXPECT_EQ(read_answer(winning, {&high}).verdict, Verdict::accept);
    }
    char byte;
    ssize_t n = -1;
    int why = 0;  // a socket tells its error once
    ASSERT_TRUE(drive({&high}, [&] {
      n = recv(dialled.fd, &byte, 1, MSG_DONTWAIT);
      why = n < 0 ? errno : 0;
      return why != EAGAIN;
    }));
    EXPECT_EQ(n, -1) << "closed in order";
    EXPECT_EQ(why, ECONNRESET);
  }
}

TEST(Race, LowerRankThatIsOnlyDiallingTakesWhatComes) {
  TestNode low(0, 2), high(1, 2);
  ASSERT_TRUE(low.start() && high.start());
  DeafPeer deaf;  // low stays in connect()
  ASSERT_EQ(low.tcp.set_card(1, card_for(low, deaf.port, "o127.0.0.1/8").c_str()), Outcome::ok);
  ASSERT_EQ(high.tcp.set_card(0, low.card().c_str()), Outcome::ok);
  (void)low.send(1, "x");
  ASSERT_TRUE(push_until_taken({&low, &high}, [&] { return high.send(0, "through"); }));
  ASSERT_TRUE(drive({&low, &high}, [&] { return low.frames.size() == 1; }));
  expect_alive(low, high);
}

TEST(Vanish, BeforeConfirmNobodyIsLost) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  swap_cards({&a, &b});
  for (int stage = 0; stage < 4; ++stage) {
    Raw raw = connect_to(port_of(b));
    const Hello hello = hello_of(a, 1);
    if (stage == 1) raw.say(&hello, 20);
    if (stage >= 2) {
      raw.say(&hello, sizeof hello);
      EXPECT_EQ(read_answer(raw, {&b}).verdict, Verdict::accept);
    }
    if (stage == 3) {
      EXPECT_EQ(b.send(0, "waits for the Confirm"), Push::full);
      raw.say(&hello, 5);
    }
    rest({&b}, 5);
    close(std::exchange(raw.fd, -1));
    rest({&b}, 20);
    EXPECT_TRUE(b.losses.empty()) << stage;
  }
  expect_alive(a, b);
}

TEST(Vanish, AfterConfirmTheRankIsLost) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  Raw raw = join_as(a, b);
  FrameHeader half;
  half.length = 10'000;
  raw.say(&half, sizeof half);
  raw.say(&half, sizeof half);  // 32 bytes of the body
  rest({&b}, 20);
  EXPECT_TRUE(b.losses.empty());
  close(std::exchange(raw.fd, -1));
  ASSERT_TRUE(drive({&b}, [&] { return b.losses.size() == 1; }));
  EXPECT_EQ(b.losses[0].why, Outcome::peer_lost);
  EXPECT_TRUE(b.frames.empty());
}

TEST(Vanish, AcceptorThatHangsUpIsDialledAgain) {
  TestNode a(0, 2), b(1, 2);
  FakePeer fake;
  ASSERT_TRUE(a.start() && b.start());
  ASSERT_EQ(a.tcp.set_card(1, card_for(a, fake.port).c_str()), Outcome::ok);
  EXPECT_EQ(a.send(1, "x"), Push::full);
  for (int stage = 0; stage < 3; ++stage) {
    Raw dialled = fake.accept_from({&a});
    if (stage == 1) rest({&a}, 20);
    if (stage == 2) dialled.say("short", 5);
  }
  Raw dialled = fake.accept_from({&a});
  take(dialled, b, {&a});
  EXPECT_TRUE(drive({&a}, [&] { return a.tcp.writable(1); }));
  EXPECT_TRUE(a.losses.empty());
}

TEST(Patience, ARankThatComputesIsWaitedFor) {
  TestNode a(0, 2), b(1, 2);
  a.config.connect_timeout_us = 500'000;
  ASSERT_TRUE(a.start() && b.start());
  swap_cards({&a, &b});
  EXPECT_EQ(a.send(1, "x"), Push::full);
  rest({&a}, 1500);  // b is busy and calls nothing
  EXPECT_TRUE(a.losses.empty());
  EXPECT_FALSE(a.readable()) << "waiting for an answer needs no clock";
  expect_alive(a, b);
}

TEST(Patience, OneThatStaysAwayDoesNotTimeOut) {
  TestNode a(0, 2), b(1, 2);
  a.config.connect_timeout_us = 300'000;
  ASSERT_TRUE(a.start() && b.start());
  swap_cards({&a, &b});
  EXPECT_EQ(a.send(1, "x"), Push::full);
  usleep(1'000'000);  // a computes, longer than its own limit
  expect_alive(a, b);
}

TEST(Families, Ipv6Loopback) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  if (b.card().find("o::1/128") == std::string::npos) GTEST_SKIP() << "no IPv6 loopback here";
  ASSERT_EQ(a.tcp.set_card(1, card_for(b, port_of(b), "o::1/128").c_str()), Outcome::ok);
  ASSERT_TRUE(push_until_taken({&a, &b}, [&] { return a.send(1, "six"); }));
  ASSERT_TRUE(drive({&a, &b}, [&] { return b.frames.size() == 1; }));
  a.tcp.abandon();
  ASSERT_TRUE(drive({&b}, [&] { return b.losses.size() == 1; }));
  EXPECT_NE(b.losses[0].story.find("(::1"), std::string::npos) << b.losses[0].story;
}

TEST(Families, EveryInterfaceIsInTheCard) {
  TestNode a(0, 2, ""), b(1, 2, "");
  ASSERT_TRUE(a.start() && b.start());
  EXPECT_NE(a.card().find("o127.0.0.1/8"), std::string::npos) << a.card();
  EXPECT_EQ(a.card().find(' '), std::string::npos);
  EXPECT_EQ(a.card().find('='), std::string::npos);
  swap_cards({&a, &b});
  expect_alive(a, b);
}

TEST(Cards, NonsenseIsRefused) {
  TestNode a(0, 2);
  ASSERT_TRUE(a.start());
  for (const char* card :
       {"", "1", "2,0123,55,o127.0.0.1/8", "1,xyz,55,o127.0.0.1/8", "1,0123,0,o127.0.0.1/8",
        "1,0123,70000,o127.0.0.1/8", "1,0123,55", "1,0123,55,", "1,0123,55,q127.0.0.1/8",
        "1,0123,55,o127.0.0.1", "1,0123,55,o127.0.0.1/99", "1,0123,55,o127.0.0/8",
        "1,0123,55,o127.0.0.1/8 ", "1,00112233445566778,55,o127.0.0.1/8",
        "1,0,5,o1.1.1.1/8,o1.1.1.1/8,o1.1.1.1/8,o1.1.1.1/8,o1.1.1.1/8,"
        "o1.1.1.1/8,o1.1.1.1/8,o1.1.1.1/8,o1.1.1.1/8"}) {
    EXPECT_EQ(a.tcp.set_card(1, card), Outcome::bad_argument) << card;
  }
  EXPECT_EQ(a.tcp.set_card(2, a.card().c_str()), Outcome::bad_argument);
}

}  // namespace
}  // namespace headway::tcp
