// The shared segment of one host, with several of its processes played by one.
#include "transports/shm/node.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/spin_lock.h"

namespace headway::shm {
namespace {

// `ranks` nodes over one segment, each with its own mapping and bell.
struct House {
  explicit House(uint32_t ranks, uint32_t here = 0)
      : nodes(here ? here : ranks), bells(nodes.size()) {
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      nodes[i] = std::make_unique<Node>();
      EXPECT_EQ(i == 0 ? nodes[i]->create(ranks, key, sizeof key) : nodes[i]->attach(key, ranks),
                Outcome::ok);
      EXPECT_EQ(bells[i].create(), Outcome::ok);
      nodes[i]->join(i, bells[i]);
    }
  }
  ~House() {
    for (auto& node : nodes) node->detach();
    for (auto& bell : bells) bell.close();
  }
  char key[128];
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<base::Doorbell> bells;
};

bool is_rung(const base::Doorbell& bell) {
  pollfd entry{bell.read_fd(), POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

std::set<uint32_t> newcomers(Node& node) {
  uint64_t fresh[max_ranks / 64] = {};
  std::set<uint32_t> ranks;
  if (!node.take_newcomers(fresh)) return ranks;
  for (uint32_t i = 0; i < max_ranks; ++i) {
    if (fresh[i / 64] >> (i % 64) & 1) ranks.insert(i);
  }
  return ranks;
}

TEST(Node, FramesGoBothWaysBetweenTwoMappings) {
  House house(2);
  Node &zero = *house.nodes[0], &one = *house.nodes[1];
  Producer out[2];
  Consumer in[2];
  ASSERT_EQ(zero.open_to(1, out[0]), Outcome::ok);
  ASSERT_EQ(one.open_to(0, out[1]), Outcome::ok);
  EXPECT_EQ(newcomers(zero), std::set<uint32_t>{1});
  EXPECT_EQ(newcomers(one), std::set<uint32_t>{0});
  one.attach_from(0, in[1]);
  zero.attach_from(1, in[0]);
  for (int i = 0; i < 2; ++i) {
    FrameHeader header;
    header.length = 8;
    header.tag = 40 + i;
    const uint64_t body = 0x1122334455667788 + uint64_t(i);
    ASSERT_EQ(out[i].push_inline(header, &body, 0), Push::done);
    const Cell* cell = in[1 - i].peek();
    ASSERT_NE(cell, nullptr);
    EXPECT_EQ(cell->header.tag, 40 + i);
    EXPECT_EQ(memcmp(in[1 - i].body(*cell), &body, 8), 0);
    in[1 - i].pop(*cell);
    EXPECT_EQ(in[1 - i].peek(), nullptr);
  }
}

// Every pair has a ring of its own, and none lies over another or over a page.
TEST(Node, RingsOfAllPairsAreApart) {
  constexpr uint32_t ranks = 9;
  House house(ranks);
  std::vector<Producer> out(ranks * ranks);
  for (uint32_t from = 0; from < ranks; ++from) {
    for (uint32_t to = 0; to < ranks; ++to) {
      if (from == to) continue;
      ASSERT_EQ(house.nodes[from]->open_to(to, out[from * ranks + to]), Outcome::ok);
    }
  }
  const uint32_t frame_max = house.nodes[0]->shape().frame_max();
  // Fill all of them, cells and payload, then look.
  std::vector<char> body(frame_max);
  for (uint32_t from = 0; from < ranks; ++from) {
    for (uint32_t to = 0; to < ranks; ++to) {
      if (from == to) continue;
      FrameHeader header;
      header.source = int32_t(from);
      header.tag = int32_t(to);
      memset(body.data(), int(from * ranks + to), body.size());
      for (int i = 0; i < 4; ++i) {
        header.length = frame_max;
        const Feed feed{.flat = body.data(), .length = frame_max};
        ASSERT_EQ(out[from * ranks + to].push_payload(header, nullptr, 0, feed, 0), Push::done);
      }
      header.length = 8;
      while (out[from * ranks + to].push_inline(header, body.data(), 0) == Push::done) {
      }
    }
  }
  for (uint32_t to = 0; to < ranks; ++to) {
    EXPECT_EQ(newcomers(*house.nodes[to]).size(), ranks - 1);
    EXPECT_EQ(house.nodes[to]->own().ready.load(), 1u);
    EXPECT_EQ(house.nodes[to]->own().pid.load(), getpid());
    for (uint32_t from = 0; from < ranks; ++from) {
      if (from == to) continue;
      Consumer in;
      house.nodes[to]->attach_from(from, in);
      uint32_t frames = 0;
      while (const Cell* cell = in.peek()) {
        ASSERT_EQ(cell->header.source, int32_t(from));
        ASSERT_EQ(cell->header.tag, int32_t(to));
        const char* got = in.body(*cell);
        for (uint32_t i = 0; i < cell->header.length; ++i) {
          ASSERT_EQ(uint8_t(got[i]), uint8_t(from * ranks + to)) << from << " to " << to;
        }
        in.pop(*cell);
        ++frames;
      }
      EXPECT_EQ(frames, house.nodes[0]->shape().cells);
    }
  }
}

// Of six ranks, numbers 1 and 4 never came: the others get numbers without gaps, and their rings
// lie apart from each other and from all six pages.
TEST(Node, ThoseWhoJoinedGoOnWithoutTheOthers) {
  constexpr uint32_t all = 6;
  const std::vector<uint32_t> members = {0, 2, 3, 5};
  const auto count = uint32_t(members.size());
  char key[128];
  std::vector<Node> nodes(count);
  std::vector<base::Doorbell> bells(count);
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(i == 0 ? nodes[i].create(all, key, sizeof key) : nodes[i].attach(key, all),
              Outcome::ok);
    ASSERT_EQ(bells[i].create(), Outcome::ok);
    nodes[i].join(members[i], bells[i]);
  }
  for (uint32_t place = 0; place < all; ++place) {
    EXPECT_EQ(nodes[3].has_joined(place), place != 1 && place != 4) << place;
  }
  for (Node& node : nodes) node.keep(members.data(), count);
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(nodes[i].ranks(), count);
    EXPECT_EQ(nodes[i].self(), i);
    EXPECT_EQ(nodes[0].page(i).bell_fd.load(), bells[i].write_fd());
  }
  std::vector<Producer> out(count * count);
  for (uint32_t from = 0; from < count; ++from) {
    for (uint32_t to = 0; to < count; ++to) {
      if (from == to) continue;
      Producer& ring = out[from * count + to];
      ASSERT_EQ(nodes[from].open_to(to, ring), Outcome::ok);
      FrameHeader header;
      header.length = 8;
      header.source = int32_t(from);
      header.tag = int32_t(to);
      uint64_t body = from * count + to;
      while (ring.push_inline(header, &body, 0) == Push::done) {
      }
    }
  }
  for (uint32_t to = 0; to < count; ++to) {
    std::set<uint32_t> others = {0, 1, 2, 3};
    others.erase(to);
    EXPECT_EQ(newcomers(nodes[to]), others);
    EXPECT_EQ(nodes[to].page(to).pid.load(), getpid()) << "a ring lies over a page";
    for (const uint32_t from : others) {
      Consumer in;
      nodes[to].attach_from(from, in);
      uint32_t frames = 0;
      for (; const Cell* cell = in.peek(); ++frames) {
        ASSERT_EQ(cell->header.source, int32_t(from));
        ASSERT_EQ(cell->header.tag, int32_t(to));
        in.pop(*cell);
      }
      EXPECT_EQ(frames, nodes[to].shape().cells);
    }
  }
  nodes[1].own().armed.store(event_any);
  nodes[0].wake(1, event_any);
  EXPECT_TRUE(is_rung(bells[1]));
  for (Node& node : nodes) node.detach();
  for (base::Doorbell& bell : bells) bell.close();
}

// A process without shared memory has not lost its first descriptors with it.
TEST(Node, AnAttachThatFailsClosesNothing) {
  House house(3);
  const int kept[] = {fcntl(0, F_GETFD), fcntl(1, F_GETFD), fcntl(2, F_GETFD)};
  Node wrong;
  EXPECT_EQ(wrong.attach(house.key, 2), Outcome::refused);
  EXPECT_FALSE(wrong.active());
  EXPECT_FALSE(wrong.owns(reinterpret_cast<void*>(4096)));
  wrong.detach();
  for (int fd = 0; fd < 3; ++fd) EXPECT_EQ(fcntl(fd, F_GETFD), kept[fd]) << fd;
}

TEST(Node, NewcomersAreToldOnceAndOnlyOnce) {
  constexpr uint32_t ranks = 70;  // more than one word of the bit set
  House house(ranks);
  Node& last = *house.nodes[ranks - 1];
  EXPECT_TRUE(newcomers(last).empty());
  Producer out[4];
  ASSERT_EQ(house.nodes[0]->open_to(ranks - 1, out[0]), Outcome::ok);
  ASSERT_EQ(house.nodes[63]->open_to(ranks - 1, out[1]), Outcome::ok);
  ASSERT_EQ(house.nodes[64]->open_to(ranks - 1, out[2]), Outcome::ok);
  EXPECT_EQ(newcomers(last), (std::set<uint32_t>{0, 63, 64}));
  EXPECT_TRUE(newcomers(last).empty());
  ASSERT_EQ(house.nodes[68]->open_to(ranks - 1, out[3]), Outcome::ok);
  EXPECT_EQ(newcomers(last), (std::set<uint32_t>{68}));
  EXPECT_TRUE(newcomers(*house.nodes[0]).empty());
}

#if defined(HEADWAY_DEBUG)
TEST(NodeDeathTest, ARingIsAnnouncedBeforeItIsUsed) {
  House house(2);
  Producer out;
  Consumer in;
  EXPECT_DEATH(house.nodes[1]->attach_from(0, in), "does not hold");
  ASSERT_EQ(house.nodes[0]->open_to(1, out), Outcome::ok);
  EXPECT_DEATH((void)house.nodes[0]->open_to(1, out), "does not hold");
  house.nodes[1]->attach_from(0, in);
}
#endif

TEST(Node, OnlyWhoIsArmedForTheEventIsRungAndOnce) {
  House house(2);
  Node &zero = *house.nodes[0], &one = *house.nodes[1];
  EXPECT_FALSE(zero.is_waiting(1));
  one.own().waiting.store(1);
  EXPECT_TRUE(zero.is_waiting(1));
  zero.wake(1, event_any);
  EXPECT_FALSE(is_rung(house.bells[1])) << "rung without being armed";
  one.own().armed.store(event_control);
  zero.wake(1, event_envelope | event_rendezvous);
  EXPECT_FALSE(is_rung(house.bells[1])) << "rung for an event that it does not wait for";
  EXPECT_EQ(one.own().armed.load(), uint32_t(event_control));
  zero.wake(1, event_control);
  EXPECT_TRUE(is_rung(house.bells[1]));
  EXPECT_FALSE(is_rung(house.bells[0]));
  EXPECT_EQ(one.own().armed.load(), 0u) << "the ringer takes the word";
  house.bells[1].drain();
  EXPECT_FALSE(is_rung(house.bells[1]));
  zero.wake(1, event_any);
  EXPECT_FALSE(is_rung(house.bells[1])) << "rung twice for one arming";
}

// A rank that is back by itself, as between two calls, is not rung for.
TEST(Node, WhoComesBackIsNotRung) {
  House house(2);
  Node &zero = *house.nodes[0], &one = *house.nodes[1];
  zero.set_bell_cost(5'000'000'000);
  one.own().armed.store(event_control);
  std::thread rank([&] {
    usleep(20'000);
    one.own().armed.store(0);
  });
  zero.wake(1, event_control);
  EXPECT_EQ(one.own().armed.load(), 0u);
  rank.join();
  EXPECT_FALSE(is_rung(house.bells[1]));
}

// Waiting for one who stays away costs less and less, and a sleeper is rung at once.
TEST(Node, WhoStaysAwayIsSoonRungAtOnce) {
  House house(2);
  Node &zero = *house.nodes[0], &one = *house.nodes[1];
  const auto fastest = [&](uint32_t armed, int rounds) {
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < rounds; ++round) {
      one.own().armed.store(armed);
      const uint64_t start = base::now_ns();
      zero.wake(1, event_control);
      least = std::min(least, base::now_ns() - start);
      EXPECT_TRUE(house.bells[1].drain()) << round;
    }
    return least;
  };
  (void)fastest(event_control, 1);  // opens the bell
  const uint64_t sleeper = fastest(~0u, 100);
  EXPECT_LT(fastest(event_control, 100), sleeper + 900);
}

// As if /proc of the sleeper were closed, or no descriptor left.
TEST(Node, WhoCannotOpenABellCallsItsName) {
  House house(3);
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(house.bells[i].listen(house.nodes[i]->name_of(i).c_str())) << i;
  }
  EXPECT_FALSE(base::Doorbell().listen(house.nodes[0]->name_of(2).c_str())) << "a name for two";
  const int beyond = 1 << 20;  // no such descriptor
  house.nodes[1]->own().bell_fd.store(beyond);
  const auto called = [&](uint32_t i) {
    pollfd entry{house.bells[i].call_fd(), POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
  };
  for (int round = 0; round < 100; ++round) {  // more than the queue of a socket takes
    house.nodes[1]->own().armed.store(event_any);
    house.nodes[0]->wake(1, event_control);
    EXPECT_EQ(house.nodes[1]->own().armed.load(), 0u);
  }
  EXPECT_TRUE(called(1));
  EXPECT_FALSE(is_rung(house.bells[1]));
  EXPECT_FALSE(called(0) || called(2));
  house.bells[1].ring();
  EXPECT_TRUE(house.bells[1].drain());
  EXPECT_FALSE(is_rung(house.bells[1]));
  EXPECT_TRUE(called(1)) << "taken with the rings, which costs each of them a system call more";
  EXPECT_TRUE(house.bells[1].drain());
  EXPECT_FALSE(called(1));
  EXPECT_FALSE(house.bells[1].drain());
  // Nobody listens to the name of one who died: nothing happens.
  house.bells[1].close();
  house.nodes[1]->own().armed.store(event_any);
  house.nodes[0]->wake(1, event_any);
}

TEST(Node, PullAndPushCopyOverSeveralVectors) {
  House house(2);
  std::vector<char> there(100'000), here(100'000);
  std::iota(there.begin(), there.end(), char(1));
  const auto remote = reinterpret_cast<uint64_t>(there.data());
  iovec vectors[] = {{here.data(), 10}, {here.data() + 10, 0}, {here.data() + 10, 99'990}};
  uint64_t done = 0;
  const Outcome pulled = house.nodes[0]->pull(1, remote, vectors, 3, done);
  if (pulled == Outcome::refused) GTEST_SKIP() << "process_vm_readv is not allowed here";
  ASSERT_EQ(pulled, Outcome::ok);
  EXPECT_EQ(done, 100'000u);
  EXPECT_EQ(here, there);
  for (char& byte : here) byte = char(~byte);
  iovec back[] = {{here.data(), 65'537}, {here.data() + 65'537, 100'000 - 65'537}};
  ASSERT_EQ(house.nodes[0]->push(1, remote, back, 2, done), Outcome::ok);
  EXPECT_EQ(here, there);
  EXPECT_EQ(house.nodes[0]->counters.pulled, 100'000u);
  EXPECT_EQ(house.nodes[0]->counters.pushed, 100'000u);
}

// What was copied before a hole is counted, so that a stream can go on behind it.
TEST(Node, APullIntoAHoleTellsHowFarItCame) {
  House house(2);
  constexpr size_t page = 4096;
  auto* there = static_cast<char*>(
      mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(there, MAP_FAILED);
  memset(there, 'x', 2 * page);
  ASSERT_EQ(munmap(there + 2 * page, 2 * page), 0);
  std::vector<char> here(4 * page);
  iovec vector{here.data(), here.size()};
  uint64_t done = 99;
  const Outcome outcome =
      house.nodes[0]->pull(1, reinterpret_cast<uint64_t>(there), &vector, 1, done);
  EXPECT_EQ(outcome, Outcome::refused);
  EXPECT_TRUE(done == 2 * page || done == 0) << done;
  EXPECT_EQ(size_t(std::count(here.begin(), here.end(), 'x')), done);
  munmap(there, 2 * page);
}

TEST(Node, APullFromAProcessThatIsGoneIsPeerLost) {
  House house(2);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_GT(child, 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  house.nodes[1]->own().pid.store(child);
  char here[8];
  iovec vector{here, sizeof here};
  uint64_t done = 0;
  EXPECT_EQ(house.nodes[0]->pull(1, reinterpret_cast<uint64_t>(here), &vector, 1, done),
            Outcome::peer_lost);
  EXPECT_EQ(done, 0u);
}

TEST(Node, WrongKeysAreRefused) {
  House house(3);
  const std::string key = house.key;
  Node other;
  for (const std::string& wrong :
       {std::string(), std::string("x"), std::string("12"), std::string("12:"), std::string("1:2"),
        key.substr(0, key.rfind(':'))}) {
    EXPECT_EQ(other.attach(wrong.c_str(), 3), Outcome::bad_data) << wrong;
    EXPECT_FALSE(other.active());
  }
  EXPECT_EQ(other.attach((key + "1").c_str(), 3), Outcome::refused) << "another cookie";
  EXPECT_FALSE(other.active());
  EXPECT_EQ(other.attach(key.c_str(), 4), Outcome::refused) << "another number of ranks";
  EXPECT_EQ(other.attach("999999999:3:5", 3), Outcome::peer_lost) << "no such process";
  EXPECT_FALSE(other.active());
}

TEST(Node, TheKeyMustFit) {
  Node node;
  char key[4];
  EXPECT_EQ(node.create(2, key, sizeof key), Outcome::internal);
  node.detach();
  EXPECT_EQ(node.create(max_ranks + 1, key, sizeof key), Outcome::no_resource);
}

// Creating and attaching again and again leaves no descriptor and no mapping behind.
TEST(Node, NothingIsLeftBehind) {
  const auto open_files = [] {
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) >= 0;
    return count;
  };
  const int before = open_files();
  for (int i = 0; i < 50; ++i) {
    House house(4);
    Producer out;
    ASSERT_EQ(house.nodes[1]->open_to(2, out), Outcome::ok);
    house.nodes[2]->own().armed.store(event_any);
    house.nodes[1]->wake(2, event_any);
    ASSERT_TRUE(is_rung(house.bells[2]));
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace headway::shm
