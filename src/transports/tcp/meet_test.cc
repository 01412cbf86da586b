// How connections come up: both ranks dialling at once, strangers on the port, peers that vanish in
// every state, addresses that lead nowhere.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>
#include <unistd.h>

#include "transports/tcp/detail/handshake.h"
#include "transports/tcp/tcp_test_node.h"

namespace headway::tcp {
namespace {

// A descriptor that belongs to no rank.
struct Raw {
  int fd = -1;
  explicit Raw(int f) : fd(f) {}
  Raw(Raw&& other) : fd(std::exchange(other.fd, -1)) {}
  ~Raw() {
    if (fd >= 0) close(fd);
  }
  bool ended() const {  // without waiting
    char byte;
    const ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return n == 0 || (n < 0 && errno != EAGAIN);
  }
  void say(const void* data, size_t n) const {
    EXPECT_EQ(send(fd, data, n, MSG_NOSIGNAL), ssize_t(n));
  }
};

uint16_t port_of(const TestNode& node) {
  const std::string card = node.card();
  return uint16_t(std::stoi(card.substr(card.find(',', 2) + 1)));
}

Raw connect_to(uint16_t port) {
  Raw raw(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(raw.fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return raw;
}

// A listener that is no rank; `card` leads to it.
struct FakePeer {
  Raw listener{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  uint16_t port = 0;
  explicit FakePeer(const char* address = "127.0.0.1", uint16_t wanted = 0) {
    sockaddr_in any = {};
    any.sin_family = AF_INET;
    any.sin_port = htons(wanted);
    inet_pton(AF_INET, address, &any.sin_addr);
    EXPECT_EQ(bind(listener.fd, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
    EXPECT_EQ(listen(listener.fd, 16), 0);
    socklen_t length = sizeof any;
    getsockname(listener.fd, reinterpret_cast<sockaddr*>(&any), &length);
    port = ntohs(any.sin_port);
  }
  Raw accept_from(const Nodes& nodes) {
    int fd = -1;
    drive(nodes, [&] { return (fd = accept(listener.fd, nullptr, nullptr)) >= 0; });
    EXPECT_GE(fd, 0);
    return Raw(fd);
  }
};

// A listener whose queue is full: the system drops every further attempt without an answer.
struct DeafPeer : FakePeer {
  std::vector<Raw> queued;
  DeafPeer() {
    EXPECT_EQ(listen(listener.fd, 0), 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 8; ++i) {
      queued.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)connect(queued.back().fd, reinterpret_cast<sockaddr*>(&to), sizeof to);
      pollfd p = {queued.back().fd, POLLOUT, 0};
      if (poll(&p, 1, 50) == 0) return;
    }
    ADD_FAILURE() << "the queue never became full";
  }
};

// The card of `node` with another port, or with other addresses.
std::string card_for(const TestNode& node, uint16_t port, const char* addresses = nullptr) {
  const std::string card = node.card();
  const size_t first = card.find(',', 2);
  const size_t second = card.find(',', first + 1);
  return card.substr(0, first + 1) + std::to_string(port) + "," +
         (addresses ? addresses : card.substr(second + 1));
}

Hello hello_of(const TestNode& from, uint32_t to) {
  Hello hello;
  hello.magic = hello_magic;
  hello.version = protocol_version;
  hello.from = from.config.rank;
  hello.to = to;
  hello.size = from.config.size;
  memcpy(hello.secret, from.config.secret, sizeof hello.secret);
  return hello;
}

Answer read_answer(const Raw& raw, const Nodes& nodes) {
  Answer answer = {};
  size_t have = 0;
  drive(nodes, [&] {
    const ssize_t n =
        recv(raw.fd, reinterpret_cast<char*>(&answer) + have, sizeof answer - have, MSG_DONTWAIT);
    if (n > 0) have += size_t(n);
    return have == sizeof answer || n == 0;
  });
  EXPECT_EQ(have, sizeof answer);
  return answer;
}

void confirm(const Raw& raw) {
  Answer yes;
  yes.magic = confirm_magic;
  raw.say(&yes, sizeof yes);
}

void rest(const Nodes& nodes, int ms) {
  drive(nodes, [] { return false; }, ms);
}

// True if the two can still talk to each other.
void expect_alive(TestNode& a, TestNode& b) {
  const Nodes both = {&a, &b};
  const size_t before = b.frames.size();
  ASSERT_TRUE(push_until_taken(both, [&] { return a.send(b.config.rank, "alive?"); }));
  ASSERT_TRUE(drive(both, [&] { return b.frames.size() == before + 1; }));
  EXPECT_EQ(b.frames.back().body, "alive?");
  EXPECT_TRUE(a.losses.empty());
  EXPECT_TRUE(b.losses.empty());
}

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

TEST(Judge, SecretsDifferInAnyByte) {
  unsigned char a[16], b[16];
  for (int i = 0; i < 16; ++i) a[i] = b[i] = (unsigned char)(i * 7);
  EXPECT_TRUE(same_secret(a, b));
  for (unsigned char& byte : b) {
    byte ^= 0x80;
    EXPECT_FALSE(same_secret(a, b));
    byte ^= 0x80;
  }
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
  Hello hello;
  drive({&low}, [&] {
    return recv(dialled.fd, &hello, sizeof hello, MSG_DONTWAIT | MSG_PEEK) == sizeof hello;
  });
  EXPECT_EQ(hello.magic, hello_magic);
  // Now low has committed itself. The higher rank's own Hello must be turned away ...
  Raw crossing = connect_to(port_of(low));
  const Hello mine = hello_of(high, 0);
  crossing.say(&mine, sizeof mine);
  EXPECT_EQ(read_answer(crossing, {&low}).verdict, Verdict::crossed);
  EXPECT_TRUE(drive({&low}, [&] { return crossing.ended(); }));
  // ... and low's accepted.
  Answer yes;
  yes.magic = answer_magic;
  dialled.say(&yes, sizeof yes);
  EXPECT_TRUE(drive({&low}, [&] { return low.tcp.writable(1); }));
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
      {Verdict::other_job, [](Hello& h) { h.secret[15] ^= 1; }},
      {Verdict::other_job, [](Hello& h) { memset(h.secret, 0, 16); }},
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
  EXPECT_EQ(read_answer(raw, {&b}).verdict, Verdict::accept);
  confirm(raw);
  EXPECT_TRUE(drive({&b}, [&] { return b.tcp.writable(0); }));
}

// A member of the job that then sends nonsense is lost, with a reason.
TEST(Member, GarbageFramesEndTheConnection) {
  for (int kind = 0; kind < 3; ++kind) {
    TestNode a(0, 2), b(1, 2);
    ASSERT_TRUE(a.start() && b.start());
    b.refuse_kind = 77;
    Raw raw = connect_to(port_of(b));
    const Hello hello = hello_of(a, 1);
    raw.say(&hello, sizeof hello);
    EXPECT_EQ(read_answer(raw, {&b}).verdict, Verdict::accept);
    confirm(raw);
    FrameHeader header;
    header.kind = kind == 0 ? uint8_t(1) : kind == 1 ? goodbye_kind : uint8_t(77);
    header.length = kind == 0 ? b.config.max_body + 1 : kind == 1 ? 5 : 0;
    raw.say(&header, sizeof header);
    ASSERT_TRUE(drive({&b}, [&] { return b.losses.size() == 1; })) << kind;
    EXPECT_EQ(b.losses[0].why, Outcome::bad_data);
    EXPECT_TRUE(drive({&b}, [&] { return raw.ended(); }));
    EXPECT_EQ(b.tcp.counters().garbage, 1u);
  }
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
  Raw raw = connect_to(port_of(b));
  const Hello hello = hello_of(a, 1);
  raw.say(&hello, sizeof hello);
  EXPECT_EQ(read_answer(raw, {&b}).verdict, Verdict::accept);
  confirm(raw);
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
  Answer yes;
  yes.magic = answer_magic;
  dialled.say(&yes, sizeof yes);
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
  Answer yes;
  yes.magic = answer_magic;
  dialled.say(&yes, sizeof yes);
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
  Answer yes;
  yes.magic = answer_magic;
  dialled.say(&yes, sizeof yes);
  EXPECT_TRUE(drive({&a}, [&] { return a.tcp.writable(1); }));
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
