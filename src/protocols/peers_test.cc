// The table of peers: jobs of any size, peers that stay where they are, and memory that runs out.
#include "protocols/peers.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <random>
#include <set>
#include <vector>

#include "base/heap.h"
#include "protocols/engine.h"

namespace headway::protocols {
namespace {

// No mapping succeeds while it lives, so that the heap has what it has.
class NoMemory {
 public:
  NoMemory() {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_AS, &none);
  }
  ~NoMemory() { setrlimit(RLIMIT_AS, &before_); }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

 private:
  rlimit before_{};
};

std::vector<uint32_t> shuffled(uint32_t count) {
  std::vector<uint32_t> order(count);
  for (uint32_t i = 0; i < count; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  return order;
}

// Nodes are told of the own job alone: of others nothing is known.
TEST(Peers, KnowTheNodesOfTheirOwnJob) {
  Peers peers;
  uint32_t first = 1;
  ASSERT_EQ(peers.add_job(7, 3, first), Outcome::ok);
  EXPECT_EQ(peers.node_of(2), 0u);
  base::Vec<uint64_t> nodes;
  for (const uint64_t node : {11u, 0u, 12u}) ASSERT_TRUE(nodes.push(node));
  ASSERT_TRUE(peers.place(nodes));
  ASSERT_EQ(peers.add_job(8, 2, first), Outcome::ok);
  EXPECT_EQ(peers.node_of(0), 11u);
  EXPECT_EQ(peers.node_of(1), 0u);
  EXPECT_EQ(peers.node_of(2), 12u);
  EXPECT_EQ(peers.node_of(first), 0u);
}

TEST(Peers, StayWhileTheTableGrows) {
  Peers peers;
  uint32_t first = 1;
  ASSERT_EQ(peers.add_job(7, 1000, first), Outcome::ok);
  EXPECT_EQ(first, 0u);  // the own job: its ranks are the numbers
  const std::vector<uint32_t> order = shuffled(1000);
  std::vector<Peer*> made;
  for (uint32_t i = 0; i < 500; ++i) {
    ASSERT_EQ(peers.find(order[i]), nullptr);
    made.push_back(peers.get(order[i]));
    ASSERT_NE(made.back(), nullptr);
  }
  // More peers, and more jobs.
  for (uint32_t job = 100; job < 120; ++job) {
    const uint32_t before = peers.processes();
    ASSERT_EQ(peers.add_job(job, 5000, first), Outcome::ok);
    EXPECT_EQ(first, before);
    ASSERT_NE(peers.get(first + job), nullptr);
  }
  for (uint32_t i = 500; i < 1000; ++i) ASSERT_NE(peers.get(order[i]), nullptr);
  for (uint32_t i = 0; i < 500; ++i) {
    EXPECT_EQ(peers.find(order[i]), made[i]);
    EXPECT_EQ(&peers[order[i]], made[i]);
    EXPECT_EQ(made[i]->process, order[i]);
    EXPECT_EQ(made[i]->rank, order[i]);
  }
}

TEST(Peers, WalksMeetThoseThatWereMade) {
  Peers peers;
  uint32_t first;
  ASSERT_EQ(peers.add_job(0, 100'000, first), Outcome::ok);
  std::vector<uint32_t> wanted, seen;
  for (uint32_t i = 0; i < 3 * Peers::chunk_peers + 5; ++i) wanted.push_back(99'999 - 300 * i);
  for (const uint32_t process : wanted) ASSERT_NE(peers.get(process), nullptr);
  peers.for_each([&](const Peer& peer) { seen.push_back(peer.process); });
  EXPECT_EQ(seen, wanted);
}

TEST(Peers, SameRankOfTwoJobs) {
  Peers peers;
  uint32_t own, other;
  ASSERT_EQ(peers.add_job(3, 10, own), Outcome::ok);
  ASSERT_EQ(peers.add_job(9, 6, other), Outcome::ok);
  EXPECT_EQ(peers.process_of(3, 4), 4u);
  EXPECT_EQ(peers.process_of(9, 4), 14u);
  EXPECT_EQ(peers.process_of(3, 10), Peers::nobody);
  EXPECT_EQ(peers.process_of(9, 6), Peers::nobody);
  EXPECT_EQ(peers.process_of(4, 0), Peers::nobody);
  const Peer* here = peers.get(peers.process_of(3, 4));
  const Peer* there = peers.get(peers.process_of(9, 4));
  ASSERT_TRUE(here && there);
  EXPECT_NE(here, there);
  EXPECT_EQ(here->rank, there->rank);
  EXPECT_NE(here->process, there->process);
  // The first name decides.
  uint32_t again = 77;
  EXPECT_EQ(peers.add_job(9, 6, again), Outcome::refused);
  EXPECT_EQ(again, 77u);
  EXPECT_EQ(peers.add_job(10, Peers::nobody - 16, again), Outcome::no_resource);
  EXPECT_EQ(peers.processes(), 16u);
}

// Processes of other jobs have a number for each time that they were met; what stands for them in
// all jobs leads to the latest one that is still there.
TEST(Peers, OthersByTheirIdentities) {
  Peers peers;
  uint32_t own, first, second;
  ASSERT_EQ(peers.add_job(3, 4, own), Outcome::ok);
  const uint64_t met[] = {Peers::identity(9, 7), Peers::identity(12, 0)};
  ASSERT_EQ(peers.add_others(met, 2, first), Outcome::ok);
  ASSERT_EQ(peers.add_others(met, 1, second), Outcome::ok);
  EXPECT_EQ(first, 4u);
  EXPECT_EQ(second, 6u);
  EXPECT_EQ(peers.processes(), 7u);
  EXPECT_EQ(peers.identity_of(2), Peers::identity(3, 2));
  EXPECT_EQ(peers.identity_of(4), met[0]);
  EXPECT_EQ(peers.identity_of(5), met[1]);
  EXPECT_EQ(peers.identity_of(6), met[0]);
  EXPECT_EQ(peers.process_with(Peers::identity(3, 3)), 3u);
  EXPECT_EQ(peers.process_with(Peers::identity(3, 4)), Peers::nobody);
  EXPECT_EQ(peers.process_with(Peers::identity(9, 8)), Peers::nobody);
  EXPECT_EQ(peers.process_with(met[0]), Peers::nobody) << "nobody has made it";
  Peer* older = peers.get(4);
  Peer* latest = peers.get(6);
  ASSERT_TRUE(older && latest && peers.get(5));
  EXPECT_EQ(peers.process_with(met[0]), 6u);
  EXPECT_EQ(peers.process_with(met[1]), 5u);
  latest->left = true;
  EXPECT_EQ(peers.process_with(met[0]), 4u);
  older->left = true;
  EXPECT_EQ(peers.process_with(met[0]), Peers::nobody);
}

TEST(Peers, WithoutMemoryNothingChanges) {
  Peers peers;
  uint32_t first;
  ASSERT_EQ(peers.add_job(0, 20'000, first), Outcome::ok);
  std::vector<Peer*> made;
  made.reserve(20'000);
  Outcome added;
  {
    const NoMemory none;
    // The heap has some blocks.
    while (Peer* peer = peers.get(uint32_t(made.size()))) {
      made.push_back(peer);
      if (made.size() == made.capacity()) break;
    }
    added = peers.add_job(1, 2'000'000, first);
  }
  ASSERT_LT(made.size(), 20'000u);
  EXPECT_EQ(made.size() % Peers::chunk_peers, 0u);
  EXPECT_EQ(added, Outcome::no_memory);
  EXPECT_EQ(peers.processes(), 20'000u);
  EXPECT_EQ(peers.process_of(1, 0), Peers::nobody);
  size_t seen = 0;
  peers.for_each([&](const Peer&) { ++seen; });
  EXPECT_EQ(seen, made.size());
  EXPECT_EQ(peers.find(uint32_t(made.size())), nullptr);
  for (uint32_t i = 0; i < made.size(); ++i) ASSERT_EQ(peers.find(i), made[i]);
  // There is some again.
  EXPECT_NE(peers.get(uint32_t(made.size())), nullptr);
  EXPECT_EQ(peers.add_job(1, 2'000'000, first), Outcome::ok);
  EXPECT_EQ(first, 20'000u);
}

// Never called: only asked what it can do.
class Wire final : public transports::Transport {
 public:
  explicit Wire(uint32_t caps) : caps_(caps) {}
  uint32_t caps() const override { return caps_; }
  Outcome connect(uint32_t, uint32_t&) override { return Outcome::internal; }
  Push push(uint32_t, const FrameHeader&, const void*, uint32_t, const Feed*, uint64_t,
            transports::Urgency) override {
    return Push::full;
  }
  bool writable(uint32_t) const override { return false; }
  bool reap(uint64_t) override { return false; }
  bool reap_peer(uint32_t, uint64_t) override { return false; }

 private:
  uint32_t caps_;
};

// Made before the transport is there, or after; one that is not reached by it, and oneself.
TEST(Peers, WhoIsMadeLateIsReachedLikeTheOthers) {
  Peers peers;
  uint32_t first;
  ASSERT_EQ(peers.add_job(0, 1000, first), Outcome::ok);
  Wire near(transports::same_host), far(transports::in_place), farther(transports::early);
  Peer* self = peers.get(0);
  self->caps = transports::same_host;
  Peer* beside = peers.get(1);
  beside->transport = &near;
  beside->number = 77;
  Peer* early = peers.get(2);
  EXPECT_EQ(early->transport, nullptr);
  peers.reach_by(far);
  peers.reach_by(farther);
  Peer* late = peers.get(900);
  for (const Peer* peer : {early, late}) {
    EXPECT_EQ(peer->transport, &far);
    EXPECT_EQ(peer->number, peer->process);
    EXPECT_TRUE(peer->can(transports::in_place));
  }
  EXPECT_EQ(beside->transport, &near);
  EXPECT_EQ(beside->number, 77u);
  EXPECT_EQ(self->transport, nullptr);
}

// --- the engine's ---

struct Told {
  Outcome why = Outcome::ok;
  uint32_t peer = 0;
  int times = 0;
} told;

std::unique_ptr<Engine> make_engine(uint32_t size) {
  auto engine = std::make_unique<Engine>();
  settings::Settings settings;
  settings.progress = 0;
  told = {};
  EXPECT_EQ(engine->prepare(settings, 3, size,
                            [](Outcome why, uint32_t peer, const char*) {
                              told = {why, peer, told.times + 1};
                            }),
            Outcome::ok);
  return engine;
}

TEST(EnginePeers, AStartIsCheapWhateverTheSize) {
  const size_t before = base::heap_in_use();
  auto small = make_engine(10);
  const size_t of_small = base::heap_in_use() - before;
  auto large = make_engine(10'000);
  const size_t of_large = base::heap_in_use() - before - of_small;
  EXPECT_NE(large->find_peer(3), nullptr);  // oneself
  EXPECT_EQ(large->find_peer(4), nullptr);
  EXPECT_LE(of_large, of_small + 8 * 10'000);
  small->handoff().stop();
  large->handoff().stop();
}

// Whoever is named by a frame, or dies, while there is no memory for what is known of it: the story
// is told, and nothing else happens.
TEST(EnginePeers, NoMemoryForAPeerIsTold) {
  constexpr uint32_t size = 50'000;
  auto engine = make_engine(size);
  uint32_t missing = 4;
  bool sense = true, begun = true, sent_for = true;
  Told of_frame, of_begin, of_end, of_death;
  {
    const NoMemory none;
    while (missing < size - 1 && engine->peer(missing)) ++missing;
    FrameHeader header;
    header.kind = uint8_t(Kind::eager);
    sense = engine->frame(missing, header, "");
    of_frame = told;
    transports::Receiver& receiver = *engine;
    Landing landing;
    begun = receiver.begin(missing, header, landing);
    of_begin = told;
    sent_for = receiver.needs(missing);
    receiver.left(missing);
    of_end = told;
    receiver.lost(missing, Outcome::peer_lost, "it died");
    of_death = told;
  }
  ASSERT_LT(missing, size - 1);
  EXPECT_FALSE(sense);
  EXPECT_FALSE(begun);
  EXPECT_FALSE(sent_for);
  EXPECT_EQ(of_frame.why, Outcome::no_memory);
  EXPECT_EQ(of_frame.peer, missing);
  EXPECT_EQ(of_begin.times, 2);
  EXPECT_EQ(of_end.times, 3);
  EXPECT_EQ(of_death.times, 4);
  EXPECT_EQ(of_death.why, Outcome::peer_lost);
  EXPECT_EQ(engine->find_peer(missing), nullptr);
  EXPECT_NE(engine->peer(missing), nullptr);  // there is memory again
  engine->handoff().stop();
}

}  // namespace
}  // namespace headway::protocols
