// Who has read or heard what ranks say to each other, and wants to be one.
#include <chrono>

#include "transports/tcp/tcp_test_fakes.h"

namespace headway::tcp {
namespace {

TEST(Impostor, WhatWasSaidOnceOpensNothing) {
  TestNode a(0, 3), b(1, 3), c(2, 3);
  ASSERT_TRUE(a.start() && b.start() && c.start());
  const Hello hello = hello_of(a, 1);
  Raw first = connect_to(port_of(b));
  first.say(&hello, sizeof hello);
  const Answer answer = read_answer(first, {&b});
  ASSERT_EQ(answer.verdict, Verdict::accept);
  // Again, while the first is still open: it neither opens, nor takes the place of the first.
  for (int i = 0; i < 100; ++i) {
    Raw again = connect_to(port_of(i % 2 ? c : b));
    again.say(&hello, sizeof hello);
    confirm(again, a, hello, answer);
    const auto rejected = [&] {
      return b.tcp.counters().rejected.get() + c.tcp.counters().rejected.get();
    };
    ASSERT_TRUE(drive({&b, &c}, [&] { return rejected() == uint64_t(i) + 1; })) << i;
  }
  EXPECT_EQ(b.tcp.counters().rejected, 50u);
  confirm(first, a, hello, answer);
  ASSERT_TRUE(drive({&b}, [&] { return b.tcp.writable(0); }));
  EXPECT_EQ(b.tcp.counters().connections, 1u);
  EXPECT_EQ(c.tcp.counters().connections, 0u);
}

TEST(Impostor, OlderAttemptsAreNotHeard) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  const Hello older = hello_of(a, 1), newer = hello_of(a, 1);
  Raw second = connect_to(port_of(b));
  second.say(&newer, sizeof newer);
  const Answer answer = read_answer(second, {&b});
  Raw first = connect_to(port_of(b));
  first.say(&older, sizeof older);
  EXPECT_TRUE(drive({&b}, [&] { return first.ended(); }));
  confirm(second, a, newer, answer);
  EXPECT_TRUE(drive({&b}, [&] { return b.tcp.writable(0); }));
}

// A Hello that never reached its rank, said by who caught it: without the secret the nonce of the
// Answer cannot be answered, and the rank's next Hello takes the connection's place.
TEST(Impostor, ACaughtHelloDoesNotOpen) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  const Hello caught = hello_of(a, 1);
  for (int kind = 0; kind < 3; ++kind) {
    const Hello hello = kind == 0 ? caught : hello_of(a, 1);
    Raw raw = connect_to(port_of(b));
    raw.say(&hello, sizeof hello);
    const Answer answer = read_answer(raw, {&b});
    ASSERT_EQ(answer.verdict, Verdict::accept);
    if (kind == 0) {  // says nothing more, and goes on existing
      Raw kept(std::exchange(raw.fd, -1));
      const Hello own = hello_of(a, 1);
      Raw other = connect_to(port_of(b));
      other.say(&own, sizeof own);
      EXPECT_EQ(read_answer(other, {&b}).verdict, Verdict::accept);
      EXPECT_TRUE(drive({&b}, [&] { return kept.ended(); }));
      continue;
    }
    Confirm no;
    no.magic = confirm_magic;
    if (kind == 1) no.seal = answer.seal;  // said back
    if (kind == 2) no.seal = hello.seal;
    raw.say(&no, sizeof no);
    FrameHeader header;
    raw.say(&header, sizeof header);
    EXPECT_TRUE(drive({&b}, [&] { return raw.ended(); })) << kind;
  }
  EXPECT_TRUE(b.frames.empty());
  EXPECT_TRUE(b.losses.empty());
  EXPECT_EQ(b.tcp.counters().connections, 0u);
}

// At the address of a rank, which it does not know the secret of.
TEST(Impostor, AListenerMustKnowTheSecretToo) {
  TestNode other(1, 2);
  memset(other.config.secret, 1, sizeof other.config.secret);
  for (int kind = 0; kind < 4; ++kind) {
    TestNode a(0, 2);
    FakePeer fake;
    ASSERT_TRUE(a.start());
    ASSERT_EQ(a.tcp.set_card(1, card_for(a, fake.port).c_str()), Outcome::ok);
    EXPECT_EQ(a.send(1, "not for strangers"), Push::full);
    Answer said;
    for (int round = 0; a.losses.empty() && round < 10; ++round) {
      int fd = -1;
      drive({&a}, [&] {
        return !a.losses.empty() || (fd = accept(fake.listener.fd, nullptr, nullptr)) >= 0;
      });
      if (fd < 0) break;
      const Raw dialled(fd);
      const Hello hello = read_hello(dialled, {&a});
      if (kind == 0 || round == 0) said = answer_to(hello, kind == 3 ? a : other);
      if (kind == 1) said.seal = hello.seal;                         // said back
      if (kind == 2) said = answer_to(hello, other, Verdict::gone);  // a wrong refusal
      if (kind == 3 && round == 0) said.verdict = Verdict(0);        // nonsense
      dialled.say(&said, sizeof said);
      drive({&a}, [&] { return dialled.ended() || !a.losses.empty(); });
    }
    ASSERT_EQ(a.losses.size(), 1u) << kind;
    EXPECT_EQ(a.losses[0].why, Outcome::no_route);
    for (const char* words : {"does not know this job's secret", "no firewall is in the way"}) {
      EXPECT_NE(a.losses[0].story.find(words), std::string::npos) << a.losses[0].story;
    }
    EXPECT_EQ(a.tcp.counters().connections, 0u);
  }
}

TEST(Impostor, OtherVersionsAreToldSo) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  // Version 1 said 40 bytes and waits for 16.
  unsigned char old[oldest_hello] = {};
  const uint32_t version = 1;
  memcpy(old, &hello_magic, sizeof hello_magic);
  memcpy(old + sizeof hello_magic, &version, sizeof version);
  Raw raw = connect_to(port_of(b));
  raw.say(old, sizeof old);
  EXPECT_EQ(read_answer(raw, {&b}).verdict, Verdict::other_version);
  // And so it answers ours.
  FakePeer fake;
  ASSERT_EQ(a.tcp.set_card(1, card_for(a, fake.port).c_str()), Outcome::ok);
  EXPECT_EQ(a.send(1, "x"), Push::full);
  while (a.losses.empty()) {
    int fd = -1;
    ASSERT_TRUE(drive({&a}, [&] {
      return !a.losses.empty() || (fd = accept(fake.listener.fd, nullptr, nullptr)) >= 0;
    }));
    if (fd < 0) break;
    const Raw dialled(fd);
    (void)read_hello(dialled, {&a});
    Answer no;
    no.magic = answer_magic;
    no.verdict = Verdict::other_version;
    dialled.say(&no, oldest_answer);
  }
  ASSERT_EQ(a.losses.size(), 1u);
  EXPECT_NE(a.losses[0].story.find("another version of the library answered"), std::string::npos)
      << a.losses[0].story;
}

// All that the seals cost: both ranks' of one connection. Far from the limit, and a bound that a
// busy machine keeps.
// Of this thread; others may have its core for long.
double spent_us() {
  timespec spent;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return double(spent.tv_sec) * 1e6 + double(spent.tv_nsec) / 1e3;
}

TEST(Impostor, SealsCostLittle) {
  const TestNode a(0, 2);
  const base::HmacKey key = key_of(a);
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const double start = spent_us();
    Hello hello;
    hello.attempt = uint64_t(round);
    hello.nonce = make_nonce(key, 0, 1);
    Answer answer;
    answer.nonce = make_nonce(key, 1, 1);
    for (int side = 0; side < 2; ++side) {
      hello.seal = seal_hello(key, hello);
      answer.seal = seal_answer(key, hello, answer);
      EXPECT_FALSE(base::same_digest(answer.seal, seal_confirm(key, hello, answer.nonce)));
    }
    best = std::min(best, spent_us() - start);
  }
  RecordProperty("microseconds", std::to_string(best));
  printf("%.1f us for the seals of one connection\n", best);
  EXPECT_LT(best, 50.0);
}

TEST(Loopback, OnlyWhereAllPeersAreHere) {
  for (const bool all_here : {true, false}) {
    TestNode a(0, 3, ""), b(1, 3, "");
    ASSERT_TRUE(a.start() && b.start());
    if (a.card().find(",g") == std::string::npos) GTEST_SKIP() << "loopback is all there is";
    swap_cards({&a, &b});
    const std::string card = a.card();
    const std::string port = std::to_string(port_of(a));
    const std::string elsewhere = "1,123," + port + card.substr(card.find(port) + port.size());
    ASSERT_EQ(a.tcp.set_card(2, all_here ? card.c_str() : elsewhere.c_str()), Outcome::ok);
    const Raw early = connect_to(port_of(a));  // before the listener changes
    a.tcp.all_cards_set();
    const size_t from = card.find(",g") + 2;
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_of(a));
    ASSERT_EQ(
        inet_pton(AF_INET, card.substr(from, card.find('/', from) - from).c_str(), &to.sin_addr),
        1);
    const Raw outside(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int made = connect(outside.fd, reinterpret_cast<sockaddr*>(&to), sizeof to);
    EXPECT_EQ(made, all_here ? -1 : 0);
    rest({&a}, 20);
    EXPECT_FALSE(early.ended()) << "it was there before";
    expect_alive(b, a);
  }
}

}  // namespace
}  // namespace headway::tcp
