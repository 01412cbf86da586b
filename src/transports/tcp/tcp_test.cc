// Frames between ranks: sizes, feeds, landings, full sockets, the end of a job.
#include "transports/tcp/tcp_test_node.h"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "base/heap.h"

namespace headway::tcp {
namespace {

struct TcpPair : testing::Test {
  TestNode a{0, 2}, b{1, 2};
  Nodes both{&a, &b};
  void SetUp() override {
    ASSERT_TRUE(a.start() && b.start());
    swap_cards(both);
  }
  void connect() {
    ASSERT_TRUE(push_until_taken(both, [&] { return a.send(1, "first"); }));
    ASSERT_TRUE(drive(both, [&] { return b.frames.size() == 1; }));
    b.frames.clear();
  }
};

void pack_reversed_pairs(const void* memory, uint64_t offset, void* out, size_t n) {
  const auto* from = static_cast<const std::string*>(memory);
  auto* to = static_cast<char*>(out);
  for (size_t i = 0; i < n; ++i) to[i] = (*from)[(offset + i) ^ 1];
}

std::string packed(const std::string& memory, uint64_t offset, size_t n) {
  std::string out(n, '\0');
  pack_reversed_pairs(&memory, offset, out.data(), n);
  return out;
}

TEST_F(TcpPair, ConnectsOnFirstUseOnly) {
  EXPECT_EQ(a.tcp.counters().connections, 0u);
  EXPECT_FALSE(a.tcp.writable(1));
  EXPECT_EQ(a.send(1, "x"), Push::full);
  EXPECT_TRUE(a.tcp.writing());
  ASSERT_TRUE(drive(both, [&] { return a.tcp.writable(1); }));
  ASSERT_TRUE(drive(both, [&] { return b.tcp.writable(0); }));
  EXPECT_EQ(a.send(1, "x", 7), Push::done);
  EXPECT_EQ(b.send(0, "answer", 8), Push::done);
  ASSERT_TRUE(drive(both, [&] { return a.frames.size() == 1 && b.frames.size() == 1; }));
  EXPECT_EQ(b.frames[0].body, "x");
  EXPECT_EQ(b.frames[0].header.sequence, 7u);
  EXPECT_EQ(b.frames[0].peer, 0u);
  EXPECT_EQ(a.frames[0].body, "answer");
  EXPECT_EQ(a.tcp.counters().connections, 1u);
  EXPECT_EQ(b.tcp.counters().connections, 1u);
  EXPECT_FALSE(a.tcp.writing());
}

TEST_F(TcpPair, EverySizeArrivesWholeAndInOrder) {
  connect();
  const uint32_t most = a.config.max_body;
  const std::vector<size_t> sizes = {0,     1,     31,     32,     33,     2015,     2016,  2017,
                                     4095,  4096,  4097,   16384,  32735,  32736,    32737, 32768,
                                     65504, 65536, 131072, 262144, 262145, most - 1, most};
  for (const Place place : {Place::flat, Place::unpacked, Place::cut}) {
    b.place = place;
    b.frames.clear();
    std::vector<std::string> bodies;
    for (size_t i = 0; i < sizes.size(); ++i) bodies.push_back(pattern(sizes[i], unsigned(i)));
    for (size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_TRUE(push_until_taken(both, [&] { return a.send(1, bodies[i], uint32_t(i)); }));
    }
    ASSERT_TRUE(drive(both, [&] { return b.frames.size() == sizes.size(); }));
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Frame& got = b.frames[i];
      EXPECT_EQ(got.header.sequence, i);
      EXPECT_EQ(got.header.length, sizes[i]);
      const bool cut = place == Place::cut && got.landed;
      EXPECT_TRUE(got.body == (cut ? bodies[i].substr(0, sizes[i] / 2 + 1) : bodies[i]))
          << sizes[i];
    }
  }
  EXPECT_TRUE(b.losses.empty());
}

// A page that was closed when a read met it: opened by us, by another thread meanwhile (there is
// nothing left to open), or by nobody.
TEST_F(TcpPair, ABodysPlaceThatWasClosed) {
  constexpr size_t bytes = 1 << 20;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  connect();
  b.body_place = static_cast<char*>(memory);
  const std::string body = pattern(bytes, 7);
  // What came with the header is copied, which is no system call.
  const auto close_it = [&] { EXPECT_EQ(mprotect(memory, bytes, PROT_READ), 0); };
  for (const bool told : {true, false}) {
    b.frames.clear();
    int opened = 0;
    b.when_landed = close_it;
    b.open_memory = [&](const char*, size_t) {
      ++opened;
      return mprotect(memory, bytes, PROT_READ | PROT_WRITE) == 0 && told;
    };
    ASSERT_TRUE(push_until_taken(both, [&] { return a.send(1, body); }));
    ASSERT_TRUE(drive(both, [&] { return b.frames.size() == 1; })) << told;
    EXPECT_EQ(memcmp(memory, body.data(), bytes), 0);
    EXPECT_GT(opened, 0);
  }
  EXPECT_TRUE(b.losses.empty());
  b.when_landed = close_it;
  b.open_memory = nullptr;
  ASSERT_TRUE(push_until_taken(both, [&] { return a.send(1, body); }));
  ASSERT_TRUE(drive(both, [&] { return b.losses.size() == 1; }));
  EXPECT_NE(b.losses[0].story.find("cannot be written"), std::string::npos);
  munmap(memory, bytes);
}

TEST_F(TcpPair, FeedsFlatAndPackedWithHeads) {
  connect();
  const std::string memory = pattern(1 << 20, 99);
  unsigned number = 0;
  std::vector<std::string> expected;
  for (const size_t n : {size_t(1), size_t(100), size_t(5000), size_t(70000), size_t(1000000)}) {
    for (const size_t head : {size_t(0), size_t(40), size_t(3000)}) {
      for (const bool flat : {true, false}) {
        const std::string front = pattern(head, number);
        Feed feed;
        feed.offset = 2 * number;
        feed.length = n;
        if (flat) {
          feed.flat = memory.data() + feed.offset;
        } else {
          feed.pack = pack_reversed_pairs;
          feed.memory = &memory;
        }
        ASSERT_TRUE(push_until_taken(both, [&] { return a.feed(1, front, feed, number, number); }));
        expected.push_back(front +
                           (flat ? memory.substr(feed.offset, n) : packed(memory, feed.offset, n)));
        ++number;
      }
    }
  }
  ASSERT_TRUE(drive(both, [&] { return b.frames.size() == number; }));
  for (unsigned i = 0; i < number; ++i) EXPECT_TRUE(b.frames[i].body == expected[i]) << i;
}

TEST_F(TcpPair, FeedIsNotTouchedAfterDoneOrSent) {
  connect();
  std::mt19937 random(20261121);
  std::vector<std::string> expected;
  struct Held {
    std::string memory;
    bool in_use = true;
  };
  std::deque<Held> held;
  for (unsigned i = 0; i < 300; ++i) {
    const size_t n = 1 + random() % 400'000;
    held.push_back({pattern(n, i), true});
    Held& mine = held.back();
    expected.push_back(mine.memory);
    const bool flat = random() % 2;
    Feed feed;
    feed.length = n;
    if (flat) {
      feed.flat = mine.memory.data();
    } else {
      feed.memory = &mine.memory;
      feed.pack = pack_reversed_pairs;
      if (n % 2) mine.memory.push_back('x');
      expected.back() = packed(mine.memory, 0, n);
    }
    Push result = Push::full;
    ASSERT_TRUE(drive(both, [&] { return (result = a.feed(1, "", feed, i)) != Push::full; }));
    const auto spoil = [&](Held& each) {
      std::fill(each.memory.begin(), each.memory.end(), '!');
      each.in_use = false;
    };
    for (const uint64_t cookie : a.sent_cookies) spoil(held[cookie]);
    a.sent_cookies.clear();
    if (result == Push::done) spoil(mine);
  }
  ASSERT_TRUE(drive(both, [&] { return b.frames.size() == expected.size(); }));
  for (const uint64_t cookie : a.sent_cookies) held[cookie].in_use = false;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(b.frames[i].body == expected[i]) << i;
    EXPECT_FALSE(held[i].in_use) << i;
  }
}

TEST_F(TcpPair, SlowReaderStopsTheWriterAndLosesNothing) {
  connect();
  const std::string body = pattern(1000, 3);
  uint32_t number = 0;
  do {
    while (a.send(1, body, number) == Push::done && number < 1'000'000) ++number;
    ASSERT_LT(number, 1'000'000u) << "the socket never became full";
    usleep(2000);  // the kernel moves what it can to the reader's side
  } while (a.tcp.reap(1 << 20));
  EXPECT_FALSE(a.tcp.writable(1));
  EXPECT_TRUE(a.tcp.writing());
  EXPECT_EQ(a.unsent_links, 1) << "the rest of the last frame leaves only if somebody reaps";
  EXPECT_FALSE(a.readable()) << "a full socket must not wake anybody";
  ASSERT_TRUE(drive(both, [&] { return b.frames.size() == number; }));
  for (uint32_t i = 0; i < number; ++i) {
    ASSERT_EQ(b.frames[i].header.sequence, i);
    ASSERT_TRUE(b.frames[i].body == body);
  }
  EXPECT_EQ(a.unsent_links, 0);
  EXPECT_FALSE(a.tcp.writing());
  EXPECT_GT(a.tcp.rate(1), 0u);
}

// Without a cookie nobody hears of its end: what does not go out at once is copied, and the buffer
// is the caller's again. (Half of such a frame was taken for none, and it was sent twice.)
TEST_F(TcpPair, InFlightIsWhatNobodyHasTaken) {
  EXPECT_EQ(a.tcp.in_flight(1), 0u);
  connect();
  ASSERT_TRUE(drive(both, [&] { return a.tcp.in_flight(1) == 0; }));
  const std::string body = pattern(1 << 20, 1);
  const Feed feed{.flat = body.data(), .length = body.size()};
  uint64_t sent = 0;
  while (a.tcp.writable(1)) {
    ASSERT_NE(a.feed(1, "", feed, 1), Push::full);
    sent += body.size();
  }
  EXPECT_GT(a.tcp.in_flight(1), 0u);
  EXPECT_LE(a.tcp.in_flight(1), sent + 4096);
  ASSERT_TRUE(drive(both, [&] { return b.frames.size() * body.size() == sent; }));
  ASSERT_TRUE(drive(both, [&] { return a.tcp.in_flight(1) == 0; }));
}

TEST_F(TcpPair, FrameWithoutCookieIsTakenWholeOrNotAtAll) {
  connect();
  std::string body;
  Feed feed;
  int done = 0;
  for (;; ++done) {
    ASSERT_LT(done, 10'000) << "the sockets never fill";
    body = pattern(60'000, unsigned(done));
    feed.flat = body.data();
    feed.length = body.size();
    const Push pushed = a.feed(1, "", feed, 0);
    if (pushed == Push::full) break;
    ASSERT_EQ(pushed, Push::done) << "frame " << done;
    body.assign(body.size(), 'x');
  }
  ASSERT_TRUE(drive(both, [&] { return b.frames.size() == size_t(done); }));
  for (int i = 0; i < done; ++i)
    EXPECT_TRUE(b.frames[size_t(i)].body == pattern(60'000, unsigned(i)));
}

TEST_F(TcpPair, IdleConnectionsWakeNobody) {
  connect();
  EXPECT_FALSE(a.readable());
  EXPECT_FALSE(b.readable());
  ASSERT_EQ(a.send(1, "wake"), Push::done);
  pollfd p = {b.tcp.descriptor(), POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, 5000), 1);
  // Read past epoll, as a waiting rank does: no readiness may be left over.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (b.frames.empty() && std::chrono::steady_clock::now() < end) b.tcp.reap_peer(0, 65536);
  ASSERT_EQ(b.frames.size(), 1u);
  EXPECT_FALSE(b.readable());
}

TEST_F(TcpPair, OneShotOuterEpollSeesEachFrame) {
  connect();
  const int outer = epoll_create1(EPOLL_CLOEXEC);
  epoll_event once = {};
  once.events = EPOLLIN | EPOLLONESHOT;
  ASSERT_EQ(epoll_ctl(outer, EPOLL_CTL_ADD, b.tcp.descriptor(), &once), 0);
  for (size_t i = 1; i <= 20; ++i) {
    ASSERT_EQ(a.send(1, "x"), Push::done);
    epoll_event got;
    ASSERT_EQ(epoll_wait(outer, &got, 1, 5000), 1);
    while (b.tcp.reap(65536)) {
    }
    EXPECT_EQ(b.frames.size(), i);
    ASSERT_EQ(epoll_ctl(outer, EPOLL_CTL_MOD, b.tcp.descriptor(), &once), 0);
    EXPECT_EQ(epoll_wait(outer, &got, 1, 0), 0);
  }
  close(outer);
}

TEST_F(TcpPair, ExpectDelaysTheWakeAndNeverHangs) {
  connect();
  const std::string body = pattern(300'000, 5);
  const std::string half = body.substr(0, 150'000);
  b.tcp.expect(0, 64'000);
  ASSERT_EQ(a.send(1, "tiny"), Push::done);
  usleep(20'000);
  EXPECT_FALSE(b.readable()) << "36 bytes woke a sleeper that waits for 64,000";
  Feed feed;
  feed.flat = body.data();
  feed.length = body.size();
  ASSERT_NE(a.feed(1, "", feed, 1), Push::full);
  // Each sleep is announced with what is really missing, down to the last byte.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (b.frames.size() < 2 && std::chrono::steady_clock::now() < end) {
    a.tcp.reap(1 << 20);
    pollfd p = {b.tcp.descriptor(), POLLIN, 0};
    if (poll(&p, 1, 20) == 1) b.tcp.reap(50'000);
    if (b.frames.size() == 1) b.tcp.expect(0, body.size() - b.last_arrived);
  }
  ASSERT_EQ(b.frames.size(), 2u);
  EXPECT_TRUE(b.frames[1].body == body);
  ASSERT_EQ(a.send(1, "last"), Push::done);
  ASSERT_TRUE(drive(both, [&] { return b.frames.size() == 3; }));
}

TEST_F(TcpPair, BudgetBoundsOneReap) {
  connect();
  const std::string body = pattern(1 << 20, 6);
  Feed feed;
  feed.flat = body.data();
  feed.length = body.size();
  ASSERT_EQ(a.feed(1, "", feed, 1), Push::started);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (b.frames.empty() && std::chrono::steady_clock::now() < end) {
    a.tcp.reap(1 << 20);
    const uint64_t before = b.tcp.counters().bytes_in;
    b.tcp.reap(10'000);
    // One read may overshoot: it takes what one call of the system gives.
    EXPECT_LE(b.tcp.counters().bytes_in - before, uint64_t(512) << 10);
  }
  ASSERT_EQ(b.frames.size(), 1u);
  EXPECT_TRUE(b.frames[0].body == body);
  EXPECT_EQ(a.sent_cookies, std::vector<uint64_t>{1});
}

// What a rank has sent is not lost when it ends at once after it has rested, though frames for it
// come meanwhile that it never reads.
TEST_F(TcpPair, RestKeepsTheLastFrames) {
  connect();
  const std::string body = pattern(200'000, 8);
  Feed feed;
  feed.flat = body.data();
  feed.length = body.size();
  ASSERT_NE(a.feed(1, "", feed, 1), Push::full);
  ASSERT_EQ(b.send(0, "to a"), Push::done);
  a.tcp.rest();
  EXPECT_FALSE(a.tcp.is_delivered()) << "half of it waits here";
  ASSERT_TRUE(drive({&a, &b}, [&] { return a.tcp.is_delivered(); }));
  ASSERT_EQ(b.send(0, "never read"), Push::done);
  a.tcp.finish();
  ASSERT_TRUE(drive({&b}, [&] { return !b.leavers.empty(); }));
  ASSERT_EQ(b.frames.size(), 1u);
  EXPECT_TRUE(b.frames[0].body == body);
  EXPECT_TRUE(b.losses.empty());
  EXPECT_EQ(b.leavers, std::vector<uint32_t>{0});
}

TEST_F(TcpPair, PeerThatRestsIsNotLost) {
  connect();
  ASSERT_EQ(a.send(1, "last"), Push::done);
  a.tcp.rest();
  ASSERT_TRUE(drive({&a, &b}, [&] { return a.tcp.is_delivered(); }));
  a.tcp.finish();
  ASSERT_TRUE(drive({&b}, [&] { return b.frames.size() == 1 && !b.leavers.empty(); }));
  drive({&b}, [] { return false; }, 50);
  EXPECT_TRUE(b.losses.empty());
  EXPECT_FALSE(b.readable()) << "the end of the stream must not wake anybody for ever";
}

// Who has come back from its rest is in the job again: its sudden end is a loss.
TEST_F(TcpPair, PeerThatCameBackIsLost) {
  connect();
  a.tcp.rest();
  ASSERT_TRUE(drive({&a, &b}, [&] { return a.tcp.is_delivered(); }));
  a.tcp.wake();
  ASSERT_EQ(a.send(1, "back"), Push::done);
  ASSERT_TRUE(drive({&b}, [&] { return b.frames.size() == 1; }));
  a.tcp.abandon();
  ASSERT_TRUE(drive({&b}, [&] { return !b.losses.empty(); }));
  EXPECT_EQ(b.losses[0].why, Outcome::peer_lost);
  EXPECT_TRUE(b.leavers.empty());
}

// A connection that is made while a rank rests hears of it, too.
TEST_F(TcpPair, WhoConnectsToOneThatRestsIsTold) {
  a.tcp.rest();
  EXPECT_TRUE(a.tcp.is_delivered());
  ASSERT_TRUE(push_until_taken({&a, &b}, [&] { return b.send(0, "hello"); }));
  ASSERT_TRUE(drive({&a, &b}, [&] { return a.frames.size() == 1 && a.tcp.is_delivered(); }));
  a.tcp.finish();
  ASSERT_TRUE(drive({&b}, [&] { return !b.leavers.empty(); }));
  EXPECT_TRUE(b.losses.empty());
}

// Frames for one that rested and has ended matter only if an operation needs them.
TEST_F(TcpPair, MessageToOneThatRestsAndEndsIsLost) {
  for (const bool needed : {false, true}) {
    TestNode c(0, 2), d(1, 2);
    ASSERT_TRUE(c.start() && d.start());
    swap_cards({&c, &d});
    ASSERT_TRUE(push_until_taken({&c, &d}, [&] { return c.send(1, "x"); }));
    c.tcp.rest();
    ASSERT_TRUE(drive({&c, &d}, [&] { return c.tcp.is_delivered() && d.frames.size() == 1; }));
    const std::string body = pattern(1 << 20, 8);
    Feed feed;
    feed.flat = body.data();
    feed.length = body.size();
    while (d.feed(0, "", feed, 5) == Push::done) {
    }
    d.in_need = needed;
    c.tcp.finish();
    ASSERT_TRUE(drive({&d}, [&] { return !d.losses.empty() || !d.leavers.empty(); }));
    EXPECT_EQ(d.losses.size(), needed ? 1u : 0u);
    EXPECT_EQ(d.leavers.size(), needed ? 0u : 1u);
    EXPECT_FALSE(d.tcp.writing());
  }
}

TEST_F(TcpPair, PeerThatVanishesIsLostOnce) {
  connect();
  a.tcp.abandon();  // closes without a word, as a killed process does
  ASSERT_TRUE(drive({&b}, [&] { return !b.losses.empty(); }));
  drive({&b}, [] { return false; }, 50);
  ASSERT_EQ(b.losses.size(), 1u);
  EXPECT_EQ(b.losses[0].peer, 0u);
  EXPECT_EQ(b.losses[0].why, Outcome::peer_lost);
  EXPECT_NE(b.losses[0].story.find("127.0.0.1"), std::string::npos) << b.losses[0].story;
  EXPECT_EQ(b.send(0, "x"), Push::full);
  drive({&b}, [] { return false; }, 50);
  EXPECT_EQ(b.losses.size(), 1u);
}

TEST_F(TcpPair, PeerThatVanishesWhileWrittenTo) {
  connect();
  const std::string body = pattern(1 << 20, 8);
  Feed feed;
  feed.flat = body.data();
  feed.length = body.size();
  while (a.feed(1, "", feed, 5) == Push::done) {
  }
  b.tcp.abandon();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (a.losses.empty() && std::chrono::steady_clock::now() < end) {
    (void)a.send(1, "more");
    a.tcp.reap(1 << 20);
  }
  ASSERT_EQ(a.losses.size(), 1u);
  EXPECT_EQ(a.losses[0].why, Outcome::peer_lost);
  EXPECT_FALSE(a.tcp.writing());
}

TEST_F(TcpPair, EngineMayPushFromInsideSent) {
  connect();
  struct Chain : TestNode {
    using TestNode::TestNode;
    std::string body = pattern(300'000, 1);
    int left = 20;
    void sent(uint32_t peer, uint64_t) override {
      while (left > 0) {
        Feed feed;
        feed.flat = body.data();
        feed.length = body.size();
        if (this->feed(peer, "", feed, 1) == Push::full) return;
        --left;
      }
    }
  };
  Chain c(0, 2);
  TestNode d(1, 2);
  ASSERT_TRUE(c.start() && d.start());
  swap_cards({&c, &d});
  ASSERT_TRUE(push_until_taken({&c, &d}, [&] { return c.send(1, "go"); }));
  c.sent(1, 0);
  ASSERT_TRUE(drive({&c, &d}, [&] {
    if (c.left && c.tcp.writable(1)) c.sent(1, 0);
    return d.frames.size() == 21;
  }));
  for (size_t i = 1; i < 21; ++i) EXPECT_TRUE(d.frames[i].body == c.body);
}

TEST(TcpStart, ThousandsOfPeersCostLittle) {
  const size_t before = base::heap_in_use();
  {
    TestNode a(0, 8192);
    ASSERT_TRUE(a.start());
    EXPECT_LT(base::heap_in_use() - before, 512u << 10);
  }
}

TEST(TcpStart, FinishGivesEverythingBackAndMayStartAgain) {
  TestNode a(0, 2), b(1, 2);
  size_t after_first = 0;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(a.start() && b.start());
    swap_cards({&a, &b});
    ASSERT_TRUE(push_until_taken({&a, &b}, [&] { return a.send(1, "x"); }));
    ASSERT_TRUE(drive({&a, &b}, [&] { return b.frames.size() == size_t(round + 1); }));
    a.tcp.finish();
    b.tcp.finish();
    if (round == 0) after_first = base::heap_in_use();
    EXPECT_EQ(base::heap_in_use(), after_first);
  }
}

TEST(TcpStart, UnknownInterfaceIsExplained) {
  TestNode a(0, 2, "nosuch0");
  EXPECT_EQ(a.tcp.start(a.config, &a), Outcome::no_route);
  const std::string why = a.tcp.explanation();
  EXPECT_NE(why.find("nosuch0"), std::string::npos);
  EXPECT_NE(why.find("lo (127.0.0.1)"), std::string::npos) << why;
}

}  // namespace
}  // namespace headway::tcp
