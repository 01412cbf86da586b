// Whoever is no rank of the job, and dials all the same; members that send nonsense.
#include <random>

#include "transports/tcp/tcp_test_fakes.h"

namespace headway::tcp {
namespace {

TEST(Stranger, GarbageIsClosedAndCounted) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  swap_cards({&a, &b});
  std::mt19937 random(77);
  uint64_t garbage = 0;
  for (int i = 0; i < 50; ++i) {
    Raw raw = connect_to(port_of(b));
    const std::string bytes = pattern(1 + random() % 3000, unsigned(i));
    raw.say(bytes.data(), bytes.size());
    ASSERT_TRUE(drive({&b}, [&] { return raw.ended(); })) << i;
    ++garbage;
  }
  EXPECT_EQ(b.tcp.counters().garbage, garbage);
  for (const char* text : {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n", "\n", "\x16\x03\x01"}) {
    Raw raw = connect_to(port_of(b));
    raw.say(text, strlen(text));
    ASSERT_TRUE(drive({&b}, [&] { return raw.ended(); })) << text;
  }
  EXPECT_TRUE(b.frames.empty());
  expect_alive(a, b);
}

TEST(Stranger, RightProtocolWrongDetails) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  swap_cards({&a, &b});
  struct Case {
    Verdict verdict;
    void (*spoil)(Hello&);
  };
  const Case cases[] = {
      {Verdict::other_job, [](Hello& h) { h.seal.bytes[31] ^= 1; }},
      {Verdict::other_job, [](Hello& h) { h.seal = {}; }},
      {Verdict::other_job, [](Hello& h) { h.nonce.bytes[0] ^= 1; }},
      {Verdict::other_job, [](Hello& h) { ++h.attempt; }},
      {Verdict::other_rank, [](Hello& h) { h.to = 0; }},
      {Verdict::other_rank, [](Hello& h) { h.from = 1; }},
      {Verdict::other_rank, [](Hello& h) { h.from = 2; }},
      {Verdict::other_rank, [](Hello& h) { h.from = 0xffffffff; }},
      {Verdict::other_rank, [](Hello& h) { h.size = 3; }},
      {Verdict::other_version, [](Hello& h) { h.version = 99; }},
  };
  uint64_t rejected = 0;
  for (const Case& each : cases) {
    Raw raw = connect_to(port_of(b));
    Hello hello = hello_of(a, 1);
    each.spoil(hello);
    if (each.verdict == Verdict::other_rank) hello.seal = seal_hello(key_of(a), hello);
    raw.say(&hello, sizeof hello);
    const Answer answer = read_answer(raw, {&b});
    EXPECT_EQ(answer.magic, answer_magic);
    EXPECT_EQ(answer.verdict, each.verdict);
    EXPECT_TRUE(drive({&b}, [&] { return raw.ended(); }));
    EXPECT_EQ(b.tcp.counters().rejected, ++rejected);
  }
  EXPECT_EQ(b.tcp.counters().connections, 0u);
  expect_alive(a, b);
}

TEST(Stranger, SilenceAndCrowdsDoNotKeepRanksOut) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  swap_cards({&a, &b});
  std::vector<Raw> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(connect_to(port_of(b)));
    b.tcp.reap(1 << 20);
  }
  size_t ended = 0;
  for (const Raw& raw : crowd) ended += raw.ended();
  EXPECT_EQ(ended, 200u - 64u) << "the oldest make room";
  expect_alive(a, b);
  // The rest goes after five seconds of silence.
  ASSERT_TRUE(drive(
      {&b},
      [&] {
        for (const Raw& raw : crowd) {
          if (!raw.ended()) return false;
        }
        return true;
      },
      9000));
  rest({&a, &b}, 250);
  EXPECT_FALSE(b.readable()) << "with nobody waiting the clock stands still";
  expect_alive(b, a);
}

TEST(Stranger, HelloByteByByteIsStillHeard) {
  TestNode a(0, 2), b(1, 2);
  ASSERT_TRUE(a.start() && b.start());
  Raw raw = connect_to(port_of(b));
  const Hello hello = hello_of(a, 1);
  for (size_t i = 0; i < sizeof hello; ++i) {
    raw.say(reinterpret_cast<const char*>(&hello) + i, 1);
    b.tcp.reap(1 << 20);
  }
  const Answer answer = read_answer(raw, {&b});
  EXPECT_EQ(answer.verdict, Verdict::accept);
  confirm(raw, a, hello, answer);
  EXPECT_TRUE(drive({&b}, [&] { return b.tcp.writable(0); }));
}

// A member of the job that then sends nonsense is lost, with a reason.
TEST(Member, GarbageFramesEndTheConnection) {
  for (int kind = 0; kind < 3; ++kind) {
    TestNode a(0, 2), b(1, 2);
    ASSERT_TRUE(a.start() && b.start());
    b.refuse_kind = 77;
    Raw raw = join_as(a, b);
    FrameHeader header;
    header.kind = kind == 0 ? uint8_t(1) : kind == 1 ? rest_kind : uint8_t(77);
    header.length = kind == 0 ? b.config.max_body + 1 : kind == 1 ? 5 : 0;
    raw.say(&header, sizeof header);
    ASSERT_TRUE(drive({&b}, [&] { return b.losses.size() == 1; })) << kind;
    EXPECT_EQ(b.losses[0].why, Outcome::bad_data);
    EXPECT_TRUE(drive({&b}, [&] { return raw.ended(); }));
    EXPECT_EQ(b.tcp.counters().garbage, 1u);
  }
}

}  // namespace
}  // namespace headway::tcp
